"""Documents as JSON and back; reading them by version; what checks do to weights."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from backend.errors import ClientError
from backend.records import Check
from backend.services.statistics.checks import weighed
from backend.services.statistics.codec import decode, encode
from backend.services.statistics.documents import TYPES, DocumentKind, Figure, Header, Profile
from backend.services.statistics.reading import Reader
from model.data.spaces import Value
from model.data.votes import Vote, Votes
from tests.backend.services.statistics.crowds import CONFIG, KEY, START, Project, crowd


def test_every_document_comes_back_as_it_went(tmp_path: Path) -> None:
    spans = '<Labels name="spans" toName="text"><Label value="x"/></Labels></View>'
    project = Project(tmp_path, config=CONFIG.replace("</View>", spans))
    project.give(crowd(1, tasks=40, slips=8)[0])
    project.run()
    for kind in DocumentKind:
        part = "21" if kind is DocumentKind.PROFILE else ""
        document = project.statistics.read(KEY, kind, part)
        assert isinstance(document, TYPES[kind])
        text = encode(document)
        assert decode(TYPES[kind], text) == document and text.isascii()
        assert document.header.version == project.statistics.version(KEY, kind, part)
    profile = project.statistics.profile(KEY, "21")
    assert isinstance(profile, Profile) and profile.row.last_vote.tzinfo is not None


def test_what_is_not_finite_is_unknown() -> None:
    figure = decode(Figure, encode(Figure(value=math.nan, low=-math.inf, high=0.5)))
    assert figure == Figure(value=None, low=None, high=0.5)


@pytest.mark.parametrize("text", ["[]", '{"project": "x"}', "not json", '{"project": 1, "version": 2}'])
def test_a_document_of_another_shape_is_none_and_is_logged(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    project = Project(tmp_path)
    project.store.statistics.replace(KEY, "old", {("overview", ""): text})
    assert project.statistics.overview(KEY) is None and "another release" in caplog.text
    with pytest.raises((ValueError, TypeError, KeyError)):
        decode(Header, text)


def test_a_document_is_parsed_once_a_version_and_what_another_process_wrote_is_seen(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.give(crowd(2, tasks=12)[0])
    project.run()
    reader = Reader(project.store, in_memory=1)
    first = reader.overview(KEY)
    assert first is not None and reader.overview(KEY) is first
    reader.annotators(KEY)  # takes its place
    assert reader.overview(KEY) is not first and reader.overview(KEY) == first
    body = json.loads(encode(replace(first, problem="changed elsewhere")))
    project.store.statistics.replace(KEY, "new", {("overview", ""): json.dumps(body)})
    again = reader.overview(KEY)
    assert again is not None and again.problem == "changed elsewhere"
    assert reader.version(KEY, DocumentKind.OVERVIEW) == "new" and reader.flags(KEY) is None


def test_checks_weigh_the_votes_that_were_looked_at_and_no_others() -> None:
    rows = [Vote(unit=unit, annotator=who, control="label", value=Value.of_class("A")) for unit in "12" for who in "ab"]
    votes = Votes.from_votes(rows)

    def check(unit: str, who: str, value: str, verdict: str) -> Check:
        return Check(unit=unit, annotator=who, control="label", value=value, verdict=verdict,
                     checked_at=datetime(2026, 11, 1, tzinfo=UTC))  # fmt: skip

    found = weighed(votes, [check("1", "a", '"A"', "slip"), check("1", "b", '"A"', "fine"),
                            check("2", "a", '"B"', "slip"), check("9", "a", '"A"', "slip")])  # fmt: skip
    weight = {(votes.units[u], votes.annotators[a]): w
              for u, a, w in zip(found.unit, found.annotator, found.weight, strict=True)}  # fmt: skip
    assert weight[("1", "a")] == pytest.approx(0.1) and weight[("1", "b")] == pytest.approx(2.0)
    assert weight[("2", "a")] == weight[("2", "b")] == 1.0, "the vote was changed since"
    assert weighed(votes, []) is votes and np.all(votes.weight == 1.0)


def test_only_a_vote_that_stands_can_be_checked(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.give(crowd(3, tasks=4)[0])
    ours = {"annotator": "1", "control": "label", "verdict": "fine"}
    for unit, value in (("0", '"nothing"'), ("999", '"A"'), ("\N{ARABIC-INDIC DIGIT ONE}", '"A"'), ("x/1", '"A"')):
        with pytest.raises(ClientError, match="not there any more"):
            project.statistics.check(KEY, unit=unit, value=value, **ours)
    with pytest.raises(ClientError, match="fine or slip"):
        project.statistics.check(KEY, unit="0", value='"A"', **{**ours, "verdict": "wrong"})
    assert project.store.statistics.checks(KEY) == [] and START.tzinfo is UTC
