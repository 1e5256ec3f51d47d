"""Pages over real statistics of projects that are not as one expects: accounts without names or gone, names in other
scripts, controls without a model, projects that were reset or emptied."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from backend.app import create_app
from model.data.spaces import Value
from tests.backend.services.statistics.crowds import CLASSES, CONFIG, KEY, snapshots, vote

PAGES = ("overview", "annotators", "tasks", "tasks?list=divided", "flags", "gaps")
RTL, EMOJI = "\u202eשרה כהן\u202c", "🦉 Ada 👩‍🔬"
GONE = "deleted:77"


@pytest.fixture
def client(services_with):
    """The pages of a project with four annotators: nameless, right-to-left, emoji, and a deleted account."""
    services = services_with(label_studio_url="http://localhost:8080")
    store = services.store
    store.projects.ensure(KEY, title="Odd", label_config=CONFIG)
    votes = [vote(task, str(who), Value.of_class(CLASSES[(task + (who == 3 and task % 4 == 0)) % 3]), task * 9 + who)
             for task in range(1, 31) for who in (1, 2, 3)]
    votes += [replace(vote(task, "77", Value.of_class(CLASSES[task % 3]), task), annotator=GONE)
              for task in range(1, 13)]
    store.tasks.take_over(KEY, list(snapshots(votes)))
    store.votes.set_names(KEY, {"1": "", "2": RTL, "3": EMOJI})
    services.statistics.run(KEY, lambda done, note: None)
    found = create_app(services, SimpleNamespace()).test_client()
    found.services = services
    return found


def page(client, name):
    answer = client.get(f"/projects/7/{name}")
    assert answer.status_code == 200, name
    return answer.get_data(as_text=True)


def test_people_without_names_or_accounts_and_with_names_in_other_scripts(client):
    for name in PAGES:
        page(client, name)
    shown = page(client, "annotators")
    for name in ("1", RTL, EMOJI, GONE):
        assert f"<bdi>{name}</bdi>" in shown, name  # the direction of a name ends with it
    rows = client.get("/api/projects/7/annotators").json["rows"]
    assert {row["annotator"]: (row["name"], row["votes"]) for row in rows} == {
        "1": ("1", 30), "2": (RTL, 30), "3": (EMOJI, 30), GONE: (GONE, 12)}
    for who, name in (("1", "1"), ("2", RTL), ("3", EMOJI), (GONE, GONE)):
        assert f"<bdi>{name}</bdi>" in page(client, f"annotators/{who}")
    assert EMOJI in client.get("/api/projects/7/annotators?format=csv").get_data(as_text=True)


def test_a_control_without_a_model_is_named_with_its_reason(client):
    shown = page(client, "overview")
    assert "<bdi>note</bdi></b> (TextArea) has no figures" in shown
    assert [each["name"] for each in client.get("/api/projects/7").json["unmodelled"]] == ["note"]


def test_only_the_last_number_of_annotators_that_is_counted_is_open(client):
    shown = page(client, "overview")
    assert client.get("/api/projects/7").json["coverage"]["votes_per_task"] == [0, 0, 0, 18, 12]
    assert ">4<" in shown and "4+" not in shown


def test_deleted_tasks_are_on_no_page(client):
    divided = client.get("/api/projects/7/tasks?list=divided").json["rows"]
    task = divided[0]["task"]
    client.services.store.tasks.remove(KEY, [task])
    client.services.statistics.run(KEY, lambda done, note: None)
    for name in PAGES:
        assert f"data?task={task}\"" not in page(client, name), name
    assert client.get("/api/projects/7").json["coverage"]["tasks"] == 29


def test_a_project_whose_votes_are_all_gone_says_so(client):
    client.services.store.tasks.remove(KEY, range(1, 31))
    client.services.statistics.run(KEY, lambda done, note: None)
    assert "Nobody has labelled a task yet." in page(client, "overview")
    for name in PAGES:
        page(client, name)
    assert client.get("/projects/7/annotators/2").status_code == 404


def test_a_project_of_the_same_number_in_a_reset_label_studio_begins_without_figures(client):
    client.services.store.projects.ensure("7.1774288000", title="Another", label_config=CONFIG)
    assert "There are no figures of this project yet" in page(client, "overview")
    assert RTL not in page(client, "annotators")


def test_where_it_can_be_told_of_no_task_why_votes_differ_the_divided_ones_come_first(client):
    document = client.services.statistics.tasks(KEY)
    lists = document.controls["label"]
    assert lists.divided and not lists.hardest, "three votes a task say little"
    shown = page(client, "tasks")
    assert "<h2>Most divided tasks</h2>" in shown
    for link in ("api/projects/7/tasks?list=divided", "api/projects/7/tasks?format=csv&amp;list=divided"):
        assert f'{link}"' in shown, "the same as data is the list that is shown"
        assert client.get(f"/{link.replace('&amp;', '&')}").status_code == 200
    assert "list=divided\">CSV" not in page(client, "tasks?list=hardest")
    assert "<h2>Hardest tasks</h2>" in page(client, "tasks?list=hardest")
