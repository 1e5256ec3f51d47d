import pytest

from backend.labeling.provenance import is_imported
from model.data.votes import Provenance
from tests.backend.labeling.small_tasks import annotation, votes_of

MANUAL, ACCEPTED, CHANGED, IMPORTED = Provenance


@pytest.mark.parametrize(
    ("origins", "more", "provenance"),
    [
        (["manual"], {}, MANUAL),
        (["prediction"], {}, ACCEPTED),
        (["prediction-changed"], {}, CHANGED),
        (["prediction", "manual"], {}, CHANGED),
        ([None], {"lead_time": 4.2}, MANUAL),  # posted through the API
        ([None], {"lead_time": None}, IMPORTED),
        ([None], {"lead_time": None, "parent_prediction": 14}, ACCEPTED),  # predictions turned into annotations
        (["manual"], {"lead_time": 3.0, "parent_prediction": 14}, MANUAL),  # begun from nothing of it
        (["manual"], {"import_id": 7}, IMPORTED),
        (["prediction"], {"import_id": 7}, ACCEPTED),
        (["manual"], {"lead_time": None}, MANUAL),
        ([["odd"]], {"lead_time": 1.0}, MANUAL),
    ],
)
def test_provenance_from_what_label_studio_records(origins, more, provenance):
    result = [
        {"from_name": "label", "to_name": "text", "value": {"choices": ["Positive"]}}
        | ({} if origin is None else {"origin": origin})
        for origin in origins
    ]
    (vote,) = votes_of(annotation(result=result, **more))
    assert vote.provenance is provenance


def test_only_the_regions_of_the_control_count():
    other = {"from_name": "other", "to_name": "text", "value": {"choices": ["x"]}, "origin": "prediction"}
    (vote,) = votes_of(annotation(result=[*annotation()["result"], other]))
    assert vote.provenance is MANUAL


@pytest.mark.parametrize("result", [None, [], "text", [None]])
def test_an_annotation_without_any_trace_counts_as_imported(result):
    assert is_imported({"result": result})
    assert not is_imported({"result": result, "lead_time": 0.0})


def embedded(*values, origin="prediction", predicted=("Negative",), **more):
    result = [{"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": list(values)},
               "origin": origin}]
    shown = [{"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": list(predicted)}}]
    return annotation(result=result, prediction={"id": 3, "result": shown}, **more)


@pytest.mark.parametrize(("made", "provenance"), [
    (embedded("Negative"), ACCEPTED), (embedded("Positive"), CHANGED),
    (embedded("Positive", predicted=()), CHANGED), (embedded("Negative", origin="manual"), MANUAL),
    (embedded("Positive") | {"prediction": {}}, ACCEPTED), (embedded("Positive") | {"prediction": None}, ACCEPTED),
    (embedded("Positive") | {"prediction": {"result": []}}, CHANGED),
    (embedded("Positive") | {"prediction": {"result": [], "model_version": "consensus@r3"}}, ACCEPTED),
])
def test_old_exports_say_prediction_of_what_was_changed(made, provenance):
    (vote,) = votes_of(made)
    assert vote.provenance is provenance


SHOWN = {"id": 3, "result": [{"from_name": "label", "to_name": "text", "type": "choices",
                              "value": {"choices": ["Negative"]}}]}


@pytest.mark.parametrize(("made", "provenance"), [
    (embedded("Positive") | {"prediction": None, "parent_prediction": SHOWN}, CHANGED),
    (embedded("Negative") | {"prediction": 3, "parent_prediction": SHOWN}, ACCEPTED),
    (embedded("Negative", predicted="?") | {"prediction": {"result": [
        {**SHOWN["result"][0], "value": {"choices": "Negative"}}]}}, ACCEPTED),
    (embedded("Positive", origin=None, lead_time=None) | {"prediction": None, "parent_prediction": SHOWN}, ACCEPTED),
])
def test_a_prediction_may_be_held_as_the_parent_and_a_choice_without_a_list(made, provenance):
    (vote,) = votes_of(made)
    assert vote.provenance is provenance
