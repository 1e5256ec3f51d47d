"""Titles of predictions above the editor: words and names, never ids."""

import pytest

from labelstudio.titles import others, title

NAMES = {"7": "Ada Lovelace", "8": "boris@example.com"}


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("annotator:7@r12", "For you, r12"),
        ("annotator:8@r12", "boris@example.com, r12"),
        ("annotator:77@r12", "Another annotator, r12"),
        ("annotator:deleted:9@r3", "Another annotator, r3"),
        ("consensus@r12", "Consensus, r12"),
        ("another-tool", "another-tool"),
        ("consensus@r4-old", "consensus@r4-old"),
        ("", ""),
    ],
)
def test_each_annotator_reads_words(version: str, shown: str) -> None:
    assert title(version, "7", NAMES) == shown


def test_the_usual_titles_are_short_enough_for_label_studio() -> None:
    assert all(len(title(version, "7", {})) <= 15 for version in ("annotator:7@r999", "consensus@r999"))


def test_only_accounts_of_others_are_looked_up() -> None:
    huge = "annotator:" + "9" * 30 + "@r1"
    versions = ["annotator:7@r1", "annotator:8@r1", "consensus@r1", "annotator:deleted:9@r1", "tool", "annotator:٣@r1"]
    versions.append(huge)
    assert others(versions, "7") == {8}
