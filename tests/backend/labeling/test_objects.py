import base64

from backend.labeling import parse_config
from backend.labeling.content import unpack

CHOICES = '<Choices name="c" toName="{}"><Choice value="A"/></Choices>'


def config_of(objects: str, to_name: str = "t"):
    return parse_config(f"<View>{objects}{CHOICES.format(to_name)}</View>")


def test_text_and_hypertext_are_read_in_order():
    config = config_of('<Text name="t" value="$title"/><HyperText name="h" value="$page"/>')
    assert [(each.name, each.tag, each.key) for each in config.objects] == [
        ("t", "Text", "title"),
        ("h", "HyperText", "page"),
    ]
    assert config.content({"title": "A <b>", "page": "<p>B</p><script>no</script>"}) == "A <b>\nB"
    assert config.problems({"title": "A", "page": "<p>B</p>"}) == []


def test_nested_keys_and_mixtures():
    config = config_of('<Text name="t" value="$meta.title: $meta.body[0].text"/>')
    assert config.content({"meta": {"title": "T", "body": [{"text": "B"}]}}) == "T: B"
    (problem,) = config.problems({"meta": {"title": "T"}})
    assert problem == "The task has no field 'meta.body[0].text', which Text 't' shows."


def test_inner_markup_of_hypertext_is_a_template():
    config = config_of('<HyperText name="t"><h1>$title</h1><p>by $author</p></HyperText>')
    assert config.content({"title": "T", "author": "A"}) == "T\nby A"


def test_texts_that_no_control_names_count_and_decoration_does_not():
    config = config_of(
        '<Header value="$title"/><Text name="q" value="$question"/><Text name="t" value="$answer"/>'
        '<Text name="help" value="Read this first"/>'
    )
    assert [each.name for each in config.objects] == ["q", "t"]
    assert config.content({"question": "Why?", "answer": "So.", "title": "no"}) == "Why?\nSo."


def test_missing_empty_and_undefined_data():
    config = config_of('<Text name="t" value="$text"/>')
    assert config.content({}) == "" and config.content({"text": None}) == "" and config.content({"text": "  "}) == ""
    assert config.problems({}) == ["The task has no field 'text', which Text 't' shows."]
    assert config.problems({"text": " "}) == ["Text 't' is empty for this task."]
    assert config.content({"$undefined$": "early"}) == "early"
    assert config.problems({"$undefined$": "early"}) == []
    assert config.content({"text": 12.5}) == "12.5"
    assert len(config.content({"text": "x" * 50_000})) == 50_000


def test_encoded_text():
    config = config_of('<Text name="t" value="$text" encoding="base64"/>')
    assert config.content({"text": base64.b64encode("grün".encode()).decode()}) == "grün"
    assert config.content({"text": "%%%"}) == ""


def test_what_is_not_read_is_declared_and_its_control_is_learned_all_the_same():
    config = config_of('<TimeSeries name="t" value="$csv"/><Text name="u" value="$url" valueType="url"/>')
    assert config.objects == () and config.content({"csv": "x", "url": "http://x"}) == ""
    assert [(each.name, each.tag) for each in config.unread] == [("t", "TimeSeries"), ("u", "Text")]
    assert config.problems({}) == [
        "TimeSeries 't' is not read yet.",
        "Text 'u' is behind a URL (valueType), which is not read yet.",
    ]
    assert list(config.spaces()) == ["c"]


def test_a_config_without_objects_says_so():
    config = parse_config("<View></View>")
    (problem,) = config.problems({})
    assert config.controls == () and problem.startswith("The labeling configuration shows nothing")


def test_images_sounds_and_videos_are_references_beside_the_text():
    config = config_of(
        '<Text name="t" value="$text"/><Image name="i" valueList="$pictures"/><Video name="v" value="$clip"/>'
    )
    data = {"text": "A", "pictures": ["/data/upload/1/a.png", " ", "s3://b/c.png"], "clip": "/data/upload/1/v.mp4"}
    found = unpack(config.content(data, task=7))
    assert found.text == "A" and found.task == 7 and found.modalities == ("audio", "image", "text", "video")
    assert [(one.modality, one.address) for one in found.media] == [
        ("image", "/data/upload/1/a.png"), ("image", "s3://b/c.png"), ("video", "/data/upload/1/v.mp4"),
    ]
    assert config.problems(data) == []
    assert config.problems({"text": "A", "pictures": []}) == [
        "Image 'i' has no file in this task.", "The task has no field 'clip', which Video 'v' shows.",
    ]
    assert config.content({}) == "" and config.text(data) == "A"


def test_a_task_without_its_image_keeps_its_text_and_the_kinds_that_the_config_shows():
    config = config_of('<Text name="t" value="$text"/><Image name="i" value="$image"/>')
    found = unpack(config.content({"text": "A"}))
    assert found.text == "A" and found.media == () and found.modalities == ("image", "text")


def test_the_fingerprint_follows_media_and_is_the_old_one_without_them():
    plain = config_of('<Text name="t" value="$text"/>')
    assert plain.fingerprint == config_of('<Text name="t" value="$text"/>').fingerprint
    with_image = config_of('<Text name="t" value="$text"/><Image name="i" value="$image"/>')
    assert len({plain.fingerprint, with_image.fingerprint}) == 2


def test_dialogues_are_read_turn_by_turn():
    config = config_of('<Paragraphs name="t" value="$talk" nameKey="who" textKey="says"/>')
    talk = [{"who": "Ann", "says": "Hello."}, {"says": "Hi."}, "noise", {"who": "Ann", "says": ""}]
    assert config.content({"talk": talk}) == "Ann: Hello.\nHi."
    chat = config_of('<Chat name="t" value="$messages"/>')
    assert chat.content({"messages": [{"role": "user", "content": "Hi"}]}) == "user: Hi"
