import pytest

from backend.errors import LabelConfigError
from backend.labeling import parse_config
from model.data.spaces import MultipleChoice, SingleChoice, Value
from tests.backend.labeling.configs import SENTIMENT, config_of

TWO = """<View><Text name="t" value="$text"/><HyperText name="h" value="$page"/>
<Choices name="mood" toName="t" choice="single-radio"><Choice value="good" alias="G"/><Choice value="bad"/></Choices>
<View><Choices name="topics" toName="t,h" choice="multiple"><Choice value="x"/><Choice value="y"/></Choices></View>
</View>"""


def test_several_choices_with_their_spaces():
    config = parse_config(TWO)
    assert config.spaces() == {"mood": SingleChoice(("good", "bad")), "topics": MultipleChoice(("x", "y"))}
    assert [control.to_names for control in config.controls] == [("t",), ("t", "h")]


@pytest.mark.parametrize(
    ("xml", "says"),
    [
        (
            '<Choices toName="t"><Choice value="A"/></Choices>',
            "A Choices tag of the labeling configuration has no name.",
        ),
        (
            '<Choices name="c" toName="t,gone"><Choice value="A"/></Choices>',
            "Choices 'c' points to 'gone', which does not exist.",
        ),
        (
            '<Choices name="c" toName="t"><Choice value="A"/></Choices><Rating name="c" toName="t"/>',
            "Two tags of the labeling configuration are named 'c'.",
        ),
        (
            '<Choices name="t" toName="t"><Choice value="A"/></Choices>',
            "Two tags of the labeling configuration are named 't'.",
        ),
    ],
)
def test_a_config_that_is_wrong_is_refused_with_tag_and_name(xml, says):
    with pytest.raises(LabelConfigError) as caught:
        parse_config(f'<View><Text name="t" value="$text"/>{xml}</View>')
    assert str(caught.value) == says


def test_lower_case_tags():
    config = parse_config(
        '<view><text name="t" value="$x"/><choices name="c" toname="t"><choice value="A"/></choices></view>'
    )
    assert config.spaces() == {"c": SingleChoice(("A",))} and config.controls[0].tag == "Choices"
    assert config.content({"x": "hi"}) == "hi"


def test_two_readings_of_one_config_are_equal():
    assert parse_config(TWO) == parse_config(TWO)
    assert parse_config(TWO).fingerprint == parse_config(TWO).fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        TWO.replace('"good" alias="G"', '"fine" alias="G"'),
        TWO.replace('alias="G"', 'alias="H"'),
        TWO.replace('<Choice value="bad"/>', '<Choice value="bad"/><Choice value="ugly"/>'),
        TWO.replace('choice="multiple"', 'choice="single"'),
        TWO.replace("$page", "$other"),
        TWO.replace('name="mood"', 'name="tone"'),
    ],
)
def test_the_fingerprint_changes_with_what_matters(changed):
    assert changed != TWO and parse_config(changed).fingerprint != parse_config(TWO).fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        TWO.replace("<View>", '<View style="color: red"><Header value="New"/>', 1),
        TWO.replace('<Choice value="bad"/>', '<Choice value="bad" hint="h" hotkey="b" background="red"/>'),
        TWO.replace('choice="single-radio"', 'choice="single" showInline="true" required="true"'),
    ],
)
def test_the_fingerprint_does_not_change_with_display(changed):
    assert changed != TWO and parse_config(changed).fingerprint == parse_config(TWO).fingerprint


def test_a_prediction_as_label_studio_takes_it():
    config = parse_config(TWO)
    values = {"mood": (Value.of_class("good"), 0.81234567), "topics": (Value.of_classes(["y", "x"]), 0.5)}
    prediction = config.prediction(values, data={"text": "a"}, model_version="consensus@r3", score=0.7)
    assert prediction == config.prediction(values, data={"text": "b"}, model_version="consensus@r3", score=0.7)
    assert prediction["score"] == 0.7 and prediction["model_version"] == "consensus@r3"
    mood, topics = prediction["result"]
    assert mood == {
        "id": mood["id"], "from_name": "mood", "to_name": "t", "type": "choices", "value": {"choices": ["G"]},
        "origin": "prediction", "score": 0.8123,
    }
    assert topics["value"] == {"choices": ["x", "y"]} and topics["to_name"] == "t"
    assert mood["id"] != topics["id"]


def test_what_the_task_does_not_offer_is_left_out():
    config = parse_config(TWO)

    def predicted(**values):
        given = {name: (value, 0.5) for name, value in values.items()}
        return config.prediction(given, data={}, model_version="v", score=0.5)

    assert predicted(mood=Value.of_class("removed")) is None
    assert predicted(mood=Value.of_classes(["good"])) is None  # the control was multiple when this was learned
    assert predicted(gone=Value.of_class("good")) is None
    assert predicted() is None
    partly = predicted(mood=Value.of_class("removed"), topics=Value.of_classes(["removed", "x"]))
    assert [region["value"] for region in partly["result"]] == [{"choices": ["x"]}]


def test_a_predicted_empty_set_is_a_prediction_with_an_empty_result():
    config = parse_config(TWO)
    none = config.prediction({"topics": (Value.of_classes([]), 0.9)}, data={}, model_version="v", score=0.9)
    assert none == {"result": [], "score": 0.9, "model_version": "v"}


@pytest.mark.parametrize(("score", "written"), [(1.0000001, 1.0), (-0.1, 0.0), (0.33333333, 0.3333)])
def test_scores_are_probabilities(score, written):
    config = config_of('<Choice value="A"/>')
    prediction = config.prediction({"c": (Value.of_class("A"), score)}, data={}, model_version="v", score=score)
    assert prediction["result"][0]["score"] == written and 0 <= prediction["score"] <= 1


def test_the_config_of_the_fixtures():
    assert parse_config(SENTIMENT).spaces() == {"label": SingleChoice(("Positive", "Negative", "Neutral"))}
