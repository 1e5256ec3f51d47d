"""The sample that ships: short English messages, varied, without doubles."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

from backend.labeling import parse_config
from demo.sample import CONTROL, LABEL_CONFIG, LABELS, load


def test_messages_are_many_short_varied_and_all_different() -> None:
    messages = load()
    texts = [message.text for message in messages]
    assert len(messages) >= 300
    assert len({message.id for message in messages}) == len(messages)
    assert len({text.lower().strip(" .!?") for text in texts}) > 0.97 * len(texts), "hardly differing messages"
    assert len(set(texts)) == len(texts)
    assert all(text == text.strip() and 2 <= len(text) <= 300 for text in texts)
    words = sorted(len(text.split()) for text in texts)
    assert words[len(words) // 10] <= 3 and words[-len(words) // 10] >= 15, "short and long ones"
    for mark, least in (("!", 30), ("?", 50), ("please", 15), ("thank", 20)):
        assert sum(mark in text.lower() for text in texts) >= least, mark


def test_the_label_config_is_one_that_polyvox_models_whole() -> None:
    assert fromstring(LABEL_CONFIG).tag == "View"
    config = parse_config(LABEL_CONFIG)
    assert [control.name for control in config.controls] == [CONTROL]
    assert config.unmodelled == ()
    space = config.spaces(None)[CONTROL]
    assert space.classes == LABELS
    assert config.problems({"text": load()[0].text}) == []
