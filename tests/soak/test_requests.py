"""Samples of `python -m tests.soak requests` and `load` on one server, and that the cases are what they should be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.app import create_app
from tests.backend.matrix.mutations import Sent
from tests.backend.web.conftest import make_services
from tests.backend.web.trained import KEY
from tests.soak import load, mutated
from tests.soak.cases import BYSTANDER, Case, Cases, projects
from tests.soak.ground import Ground, ground
from tests.soak.mutated import complaints
from tests.soak.report import Part
from tests.soak.wire import Got

REQUESTS = 400


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("soak")
    with ground(folder, projects(), [KEY, BYSTANDER], POLYVOX_MAX_BODY_MB=mutated.MAX_BODY_MB) as made:
        yield made


def missed(part: Part) -> list[str]:
    """What did not hold. What stays in memory is not judged by a sample: caches are not full yet."""
    return [f"{each.what}: {each.found}" for each in part.judged if not each.held and not each.what.startswith(
        ("memory", "threads", "processes"))]


@pytest.mark.timeout(600)
def test_a_sample_of_mutated_requests(on: Ground) -> None:
    part = mutated.part(on, count=REQUESTS, clients=1, seed=mutated.SEED, folder=on.folder)
    assert missed(part) == [], part.tables


def cases() -> Cases:
    return Cases(seed=1, port=9090, job="a-job", flag="a-flag")


def test_cases_depend_on_seed_and_number_alone() -> None:
    one, other = cases(), Cases(seed=2, port=9090, job="a-job", flag="a-flag")
    assert [one.case(number) for number in range(50)] == [cases().case(number) for number in range(50)]
    assert [one.case(number).raw for number in range(50)] != [other.case(number).raw for number in range(50)]


def test_every_route_has_an_original(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    adapter = create_app(services, object()).url_map.bind("")  # type: ignore[arg-type]
    reached = {adapter.match(each.path, method=each.method, return_rule=True)[0].rule
               for kind in cases().originals for each in kind}
    services.store.close()
    assert {rule.rule for rule in adapter.map.iter_rules()} - reached == set()


@pytest.mark.parametrize("got, wrong", [
    (Got(status=500, headers={"content-type": "application/json"}, body=b'{"error": "It broke into pieces."}'), "500"),
    (Got(status=400, headers={"content-type": "application/json"}, body=b'{"detail": 1}'), "a refusal that is no JSON"),
    (Got(status=404, headers={"content-type": "text/html"}, body=b"Traceback (most recent call last)"), "its insides"),
    (Got(seconds=30.0), "no answer"),
], ids=["500", "no sentence", "a traceback", "silence"])
def test_a_bad_answer_is_seen(got: Got, wrong: str) -> None:
    case = Case(number=1, route="GET /", mutation="none", raw=b"", sent=Sent(method="GET", path="/"))
    assert any(wrong in found for found in complaints(case, got))


def test_a_locked_database_in_a_sentence_is_counted_apart() -> None:
    case = Case(number=1, route="GET /", mutation="none", raw=b"", sent=Sent(method="GET", path="/"))
    said = json.dumps({"error": "The database is locked, so this cannot be answered now; try again in a moment."})
    got = Got(status=503, headers={"content-type": "application/json"}, body=said.encode())
    assert list(complaints(case, got)) == []
    assert list(complaints(case, Got(status=503, headers=got.headers, body=b'{"error": "It broke into pieces."}')))


@pytest.mark.timeout(600)
def test_a_sample_of_load() -> None:
    """Every vote arrives; the whole run has trainings as well."""
    part = load.run(minutes=0.1, count=20, trainings=False)
    assert missed(part) == ["trainings that ended meanwhile: 0"], part.tables
    assert part.about.startswith("20 annotators") and "| webhook |" in part.tables[0]
