"""Configurations are read once while they are small, and never kept beyond the bound, however many come."""

from __future__ import annotations

import pytest

from backend.labeling import kept
from backend.labeling.kept import KeptConfigs
from tests.backend.small_services import CONFIG


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were read."""
    found: list[str] = []
    parse = kept.parse_config
    monkeypatch.setattr(kept, "parse_config", lambda xml: (found.append(xml), parse(xml))[1])
    return found


def of(number: int) -> str:
    return CONFIG.replace("<View>", f"<View><!-- {number:03} -->", 1)


def test_the_same_text_is_read_once(reads: list[str]) -> None:
    configs = KeptConfigs()
    assert configs(CONFIG) is configs(CONFIG) and len(reads) == 1


def test_the_least_recently_used_go_when_the_texts_together_are_too_long(reads: list[str]) -> None:
    configs = KeptConfigs(most_characters=3 * len(of(0)))
    for number in (0, 1, 2, 0, 3, 0, 1):
        configs(of(number))
    assert reads == [of(0), of(1), of(2), of(3), of(1)]


def test_a_long_text_is_read_each_time_and_drives_out_nothing(reads: list[str]) -> None:
    configs = KeptConfigs(most_characters=len(CONFIG))
    for xml in (CONFIG, of(0), of(0), CONFIG):
        configs(xml)
    assert reads == [CONFIG, of(0), of(0)]


def test_requests_with_large_configurations_leave_little(reads: list[str]) -> None:
    configs = KeptConfigs()
    choices = "".join(f'<Choice value="c{number}"/>' for number in range(4000))
    for number in range(20):  # 100 kB each
        configs(of(number).replace("</Choices>", choices + "</Choices>"))
    assert sum(map(len, configs._kept)) <= kept.MOST_CHARACTERS and len(configs._kept) < 20
