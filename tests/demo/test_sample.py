"""The sample that ships: short English messages, varied, without doubles."""

from __future__ import annotations

from collections import Counter
from xml.etree.ElementTree import fromstring

from backend.labeling import parse_config
from demo.personas import LONG_WORDS, is_loud
from demo.sample import CONTROL, LABEL_CONFIG, LABELS, load
from demo.stage import OPEN_MESSAGES


def test_messages_are_many_short_varied_and_all_different() -> None:
    messages = load()
    texts = [message.text for message in messages]
    assert len(messages) >= 300
    assert len({message.id for message in messages}) == len(messages)
    assert len({text.lower().strip(" .!?") for text in texts}) > 0.97 * len(texts), "hardly differing messages"
    assert len(set(texts)) == len(texts)
    assert all(text == text.strip() and 2 <= len(text) <= 300 for text in texts)
    words = sorted(len(text.split()) for text in texts)
    assert words[len(words) // 10] <= 4 and words[-len(words) // 10] >= 15, "short and long ones"
    for mark, least in (("!", 30), ("?", 50), ("please", 15), ("thank", 20)):
        assert sum(mark in text.lower() for text in texts) >= least, mark


def test_moods_forms_lengths_and_marks_are_balanced() -> None:
    messages = load()
    kinds = Counter((message.mood, message.form) for message in messages)
    assert len(kinds) == 9 and set(kinds.values()) == {len(messages) // 9}
    for kind in kinds:
        mine = [message.text for message in messages if (message.mood, message.form) == kind]
        assert 0.3 <= sum(is_loud(text) for text in mine) / len(mine) <= 0.4, kind
        assert 0.3 <= sum(len(text.split()) >= LONG_WORDS for text in mine) / len(mine) <= 0.4, kind
    assert all(("?" in message.text) is (message.form == "question") for message in messages)
    first = Counter((message.mood, message.form) for message in messages[:OPEN_MESSAGES])
    assert len(first) == 9, "what everybody's label stream begins with is varied too"


def test_the_label_config_is_one_that_polyvox_models_whole() -> None:
    assert fromstring(LABEL_CONFIG).tag == "View"
    config = parse_config(LABEL_CONFIG)
    assert [control.name for control in config.controls] == [CONTROL]
    assert config.unmodelled == ()
    space = config.spaces(None)[CONTROL]
    assert space.classes == LABELS
    assert config.problems({"text": load()[0].text}) == []
