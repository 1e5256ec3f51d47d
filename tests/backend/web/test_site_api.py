"""The API of the QA site: tables as JSON and CSV, an OpenAPI document that holds, and answers to whatever is sent."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from openapi_spec_validator import validate
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from backend import app as app_module
from backend.app import create_app
from backend.report import filled
from backend.report.pages import flag_id
from backend.routes.openapi import document
from backend.services.gaps import answers, fill
from model.errors import ModelError
from tests.backend.web.conftest import make_services
from tests.backend.web.site_documents import CLASSES, KEY, NUMBER, Writer

FILE = Path(app_module.__file__).parent / "static" / "openapi.json"
OPENAPI = json.loads(FILE.read_text(encoding="utf-8"))
TABLES = ("annotators", "tasks", "tasks?list=divided", "flags", "consensus", "gaps", "gaps/matrix", "regions")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """One project for all tests of this file; what they check is taken back."""
    services = make_services(tmp_path_factory.mktemp("api"), label_studio_url="http://localhost:8080")
    Writer(tasks=130).write(services.store, gaps=True)
    yield create_app(services, SimpleNamespace())
    services.store.close()


@pytest.fixture
def api(app):
    return app.test_client()


def read(api, name):
    answer = api.get(f"/api/projects/{NUMBER}/{name}")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer


def test_the_openapi_file_is_valid_and_current():
    validate(OPENAPI)
    assert document() == OPENAPI, "run `python scripts/update_openapi.py`"


def test_the_openapi_file_names_exactly_the_routes(app):
    routes = {(rule.rule.replace("<", "{").replace(">", "}"), method.lower())
              for rule in app.url_map.iter_rules() if rule.rule.startswith("/api")
              for method in rule.methods - {"HEAD", "OPTIONS"}}
    assert routes == {(path, method) for path, methods in OPENAPI["paths"].items() for method in methods}


@pytest.mark.parametrize("path", [path for path in OPENAPI["paths"] if "get" in OPENAPI["paths"][path]
                                  and not path.endswith((".png", ".csv"))])
def test_answers_have_the_shape_that_is_promised(path, api):
    promised = OPENAPI["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    answer = api.get(path.replace("{project}", str(NUMBER)).replace("{annotator}", "3").replace("{task}", "1")).json
    jsonschema.Draft202012Validator({**promised, "components": OPENAPI["components"]}).validate(answer)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_the_same_as_csv(name, api):
    as_json = read(api, name).json
    sign = "&" if "?" in name else "?"
    answer = read(api, f"{name}{sign}format=csv")
    assert answer.mimetype == "text/csv" and "attachment" in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.get_data(as_text=True))))
    assert len(rows) == as_json["total"] >= len(as_json["rows"]) > 0
    for row, said in zip(rows, as_json["rows"], strict=False):
        assert row == {key: "" if value is None else str(value) for key, value in said.items()}


def test_regions_have_the_figures_of_all_pairs_beside_the_rows(api):
    found = read(api, "regions?sort=f1&order=desc&limit=2").json
    assert (found["tag"], found["regions"], found["tasks"]) == ("RectangleLabels", 210, 130)
    assert found["f1"] == {"value": 0.62, "low": 0.55, "high": 0.68} and found["iou"] == 0.81
    assert found["total"] == 5 and [row["f1"] for row in found["rows"]] == pytest.approx([0.6, 0.55])
    assert found["rows"][0]["annotator"] == "7" and "annotators" not in found
    assert api.get(f"/api/projects/{NUMBER}/regions?control=other").status_code == 400


def test_pages_of_a_table_make_up_the_whole(api):
    whole = read(api, "consensus?limit=1000").json
    parts = [read(api, f"consensus?limit=50&offset={offset}").json for offset in (0, 50, 100, 150)]
    assert [len(part["rows"]) for part in parts] == [50, 50, 30, 0] and whole["total"] == 130
    assert [row for part in parts for row in part["rows"]] == whole["rows"]
    assert len(read(api, "consensus").json["rows"]) == 100  # unless more are asked for


def test_rows_are_ordered_and_what_is_unknown_comes_last(api):
    for order in ("asc", "desc"):
        rows = read(api, f"annotators?sort=self_consistency&order={order}").json["rows"]
        found = [row["self_consistency"] for row in rows]
        assert found[0] is not None and set(found[1:]) == {None}
    votes = [row["votes"] for row in read(api, "annotators?sort=votes&order=asc").json["rows"]]
    assert votes == sorted(votes)


def test_without_a_direction_the_interesting_end_comes_first(api):
    kappas = [row["kappa"] for row in read(api, "annotators?sort=kappa").json["rows"]]
    scores = [row["score"] for row in read(api, "flags?sort=score").json["rows"]]
    assert kappas == sorted(kappas) and scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("asked, words", [
    ("flags?limit=0", "limit takes a whole number from 1"), ("flags?limit=x", "limit takes"),
    ("flags?offset=-1", "offset takes"), ("flags?format=xml", "format takes json or csv"),
    ("flags?state=x", "state takes"), ("flags?reason=x", "reason takes"),
    ("consensus?sort=x", "sort takes one of unit"),
    ("tasks?list=x", "list takes"), ("tasks?control=x", "control takes"), ("annotators/99", "no such annotator")])
def test_what_is_asked_wrongly_is_refused_in_a_sentence(asked, words, api):
    answer = api.get(f"/api/projects/{NUMBER}/{asked}")
    assert answer.status_code in (400, 404) and words in answer.json["error"]


@pytest.mark.parametrize("name", ["99", "12.1", "x", "99999999999999999999999", "%F0%9F%98%80", "12%2F13"])
def test_an_unknown_project_is_not_found(name, api):
    answer = api.get(f"/api/projects/{name}")
    assert answer.status_code == 404 and answer.json["error"].endswith(".")


def test_a_project_is_named_by_its_key_too(api):
    assert api.get(f"/api/projects/{KEY}").json == api.get(f"/api/projects/{NUMBER}").json


def test_a_spreadsheet_calculates_nothing(services_with):
    services = services_with()
    Writer(evil=True).write(services.store)
    answer = create_app(services, SimpleNamespace()).test_client().get(f"/api/projects/{NUMBER}/flags?format=csv")
    cells = [cell for row in csv.reader(io.StringIO(answer.get_data(as_text=True))) for cell in row]
    assert "'=2+3" in cells and not any(cell.startswith(("=", "@")) for cell in cells)


@pytest.mark.parametrize("asked, status, words", [
    ({}, 400, "a flag and a verdict"), ({"flag": 3, "verdict": "fine"}, 400, "both as text"),
    ({"flag": "x", "verdict": "fine"}, 404, "no such flag"), ({"verdict": "wrong"}, 400, "checked as fine or slip")])
def test_a_wrong_check_is_refused(asked, status, words, api):
    flag = flag_id(Writer(tasks=130).flags().rows[0])
    asked = asked if not asked or "flag" in asked else {"flag": flag, **asked}
    answer = api.post(f"/api/projects/{NUMBER}/flags/check", json=asked)
    assert answer.status_code == status and words in answer.json["error"]


def test_a_vote_that_changed_since_cannot_be_checked(services_with):
    services = services_with()
    writer = Writer()
    writer.write(services.store)
    api = create_app(services, SimpleNamespace()).test_client()
    writer.classes = CLASSES[::-1]  # all votes change, the document stays
    writer.write(services.store, documents=False)
    flag = flag_id(Writer().flags().rows[1])
    answer = api.post(f"/api/projects/{NUMBER}/flags/check", json={"flag": flag, "verdict": "slip"})
    assert answer.status_code == 400 and "changed or deleted" in answer.json["error"]


def test_what_was_said_of_a_vote_is_not_said_of_its_successor(services_with):
    services = services_with()
    writer = Writer()
    writer.write(services.store)
    api = create_app(services, SimpleNamespace()).test_client()
    flag = flag_id(writer.flags().rows[1])
    api.post(f"/api/projects/{NUMBER}/flags/check", json={"flag": flag, "verdict": "fine"})
    assert [row["flag"] for row in read(api, "flags?state=fine").json["rows"]] == [flag]
    writer.classes, writer.header = CLASSES[::-1], replace(writer.header, version="v2")
    writer.write(services.store)
    assert read(api, "flags?state=fine").json["rows"] == []


def test_masked_profiles_hold_no_id(services_with):
    services = services_with(mask_names=True)
    Writer().write(services.store)
    profile = read(create_app(services, SimpleNamespace()).test_client(), "annotators/annotator-2").json
    nearest = profile["controls"]["politeness"]["nearest"]
    shown = [profile["row"], *nearest]
    assert len(nearest) == 5 and all(each["annotator"].startswith("annotator-") for each in shown)
    assert all(each["name"].startswith("Annotator ") for each in shown)


def test_a_blind_project_holds_content_only(api):
    answer = read(api, "blind?limit=7")
    assert "attachment" in answer.headers["Content-Disposition"] and len(answer.json) == 7
    assert all(set(task) == {"data", "meta"} and set(task["data"]) == {"text"} for task in answer.json)
    ids = [task["meta"]["polyvox"]["task"] for task in answer.json]
    assert sorted(ids) == list(range(1, 8)) != ids  # the most divided ones, in another order
    assert "example.org" not in answer.get_data(as_text=True)


@pytest.fixture(scope="module")
def fuzzed(app):
    """What schemathesis sends requests to."""
    return schemathesis.openapi.from_wsgi("/static/openapi.json", app)


@pytest.mark.parametrize("path, method", [
    (path, method) for path, methods in OPENAPI["paths"].items() for method in methods])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_the_api_survives_schemathesis(mode, path, method, fuzzed):
    """Every route with whatever its schema allows, and with what it does not: only what is promised comes back."""
    @given(case=fuzzed[path][method].as_strategy(generation_mode=mode))
    @settings(max_examples=4, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    def survives(case):
        if mode is GenerationMode.POSITIVE and "project" in (case.path_parameters or {}):
            case.path_parameters["project"] = str(NUMBER)  # nobody guesses one that exists
        case.call_and_validate(checks=[
            not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance])

    try:
        survives()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # a route without anything to get wrong


def test_the_filled_matrix_as_csv_and_json(api):
    """Nothing is trained here, so votes alone fill the gaps of tasks that somebody labelled."""
    rows = list(csv.DictReader(io.StringIO(read(api, "filled.csv").get_data(as_text=True))))
    given = [row for row in rows if row["source"] == "given"]
    predicted = [row for row in rows if row["source"] == "predicted"]
    assert len(given) == 130 and len(predicted) == 130 * 5
    assert {row["version"] for row in predicted} == {"votes alone"}
    assert all(0.0 < float(row["probability"]) <= 1.0 for row in predicted)
    as_json = read(api, "filled.json?only=gaps").get_json()
    assert [str(row["task"]) for row in as_json["rows"]] == [row["task"] for row in predicted]
    assert "not given by an annotator" in as_json["about"]
    assert as_json["project"] == NUMBER and as_json["complete"] is True
    wide = list(csv.DictReader(io.StringIO(read(api, "filled.csv?form=wide").get_data(as_text=True))))
    assert len(wide) == 130 and wide[0]["3 source"] in ("given", "predicted")
    for wrong in ("filled.csv?form=tall", "filled.json?only=some", "filled.csv?control=tone"):
        assert api.get(f"/api/projects/{NUMBER}/{wrong}").status_code == 400
    assert api.get("/api/projects/99/filled.csv").status_code == 404


def test_one_export_at_a_time_and_the_place_is_free_again(api):
    """While a file is being made or sent, another one is refused; afterwards, and whatever went wrong, it is not."""
    address = f"/api/projects/{NUMBER}/filled.csv"
    first = api.get(address)
    assert first.status_code == 200 and int(first.headers["Content-Length"]) > 1
    busy = api.get(address)
    assert busy.status_code == 409 and busy.json == {"error": "Another export is being made; try again in a moment."}
    first.close()
    assert api.head(address).status_code == 200
    assert api.get(f"{address}?control=tone").status_code == 400
    assert len(read(api, "filled.csv").get_data()) == int(first.headers["Content-Length"])


@pytest.mark.parametrize("error, status", [(ModelError("nothing fits"), 400), (ValueError("secret label"), 500)])
@pytest.mark.parametrize("name", ["filled.csv", "filled.json"])
def test_an_error_halfway_is_an_error_and_no_file(error, status, name, api, monkeypatch):
    of_chunk, done = fill._of_chunk, []

    def break_off(*given):
        if done:
            raise error
        done.append(True)
        return of_chunk(*given)

    monkeypatch.setattr(answers, "CHUNK", 50)
    monkeypatch.setattr(filled, "_CELLS", 16)
    monkeypatch.setattr(fill, "_of_chunk", break_off)
    answer = api.get(f"/api/projects/{NUMBER}/{name}")
    assert answer.status_code == status and "secret" not in answer.json["error"]
    monkeypatch.undo()
    read(api, name)
