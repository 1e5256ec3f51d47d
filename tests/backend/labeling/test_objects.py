import base64

from backend.labeling import parse_config

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


def test_what_is_not_text_is_declared_and_its_control_is_learned_all_the_same():
    config = config_of('<Image name="t" value="$image"/><Text name="u" value="$url" valueType="url"/>')
    assert config.objects == () and config.content({"image": "x", "url": "http://x"}) == ""
    assert [(each.name, each.tag) for each in config.unread] == [("t", "Image"), ("u", "Text")]
    assert config.problems({}) == [
        "Image 't' is not read yet: only text is.",
        "Text 'u' is behind a URL (valueType), which is not read yet.",
    ]
    assert list(config.spaces()) == ["c"]


def test_a_config_without_objects_says_so():
    config = parse_config("<View></View>")
    assert config.controls == () and config.problems({}) == ["The labeling configuration shows no text from the task."]
