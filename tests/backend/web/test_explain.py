"""Explanations in the web app: the page, JSON and pictures; what is evil stays text, what is missing is a sentence."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from PIL import Image

from backend.app import create_app
from backend.services.statistics.codec import encode
from tests.backend.web.site_documents import EVIL, KEY, NUMBER, Writer
from tests.backend.web.test_site import Tags, text

PAGE = f"/projects/{NUMBER}/tasks/1/explanation"
API = f"/api/projects/{NUMBER}/tasks/1/explanation"


@pytest.fixture
def site(services_with):
    def make(writer=None, *, documents=True, **settings):
        services = services_with(**settings)
        (writer or Writer()).write(services.store, documents=documents)
        client = create_app(services, SimpleNamespace()).test_client()
        client.services = services
        return client

    return make


def test_the_list_of_tasks_leads_to_explanations(site):
    assert 'href="../../projects/12/tasks/1/explanation"' in text(site(), f"/projects/{NUMBER}/tasks")


@pytest.mark.parametrize("way, words", [("attribution", "What matters"), ("attention", "All annotators")])
def test_the_page_shows_annotators_side_by_side(site, way, words):
    page = text(site(), f"{PAGE}?by={way}")
    assert words in page and page.count('class="panel"') == (3 if way == "attribution" else 4)
    assert 'class="heat-' in page and "annotator3@example.org" in page
    assert "better than a random order" in page


def test_evil_texts_and_labels_stay_text(site):
    for way in ("attribution", "attention"):
        page = text(site(Writer(evil=True)), f"{PAGE}?by={way}")
        tags = Tags()
        tags.feed(page)
        assert tags.scripts == ["../../../../static/site.js"] and "&lt;script&gt;" in page
        assert [name for name in tags.attributes if name == "style" or name.startswith("on")] == []
        assert "<script>window" not in page and "<img src=x" not in page


def test_a_lead_that_is_none_is_said(site):
    client = site()
    client.services.explanations.lead = -0.01
    assert "no better than a random order of the parts" in text(client, PAGE)


def test_what_is_not_ready_shows_the_votes_and_asks_again(site):
    """The page is no error: what people said is there, and what is missing is a sentence; programs get a 409."""
    client = site()
    client.services.explanations.ready = False
    page = text(client, PAGE)
    assert "not encoded yet" in page and "annotator4@<wbr>example.org" in page and "<bdi>Neutral</bdi>" in page
    assert 'data-again="?"' in page and 'http-equiv="refresh"' in page
    assert client.get(PAGE).headers["Cache-Control"] == "no-store"
    client.services.explanations.ready = True
    assert "data-again" not in text(client, PAGE)
    client.services.explanations.ready = False
    answer = client.get(f"{API}.json")
    assert answer.status_code == 409 and "not encoded yet" in answer.json["error"]


def test_the_first_page_waits_for_nothing(site):
    client = site()
    client.services.explanations.complete = False
    page = text(client, f"{PAGE}?control=politeness")
    assert client.services.explanations.within_s < 1 and "Answers by annotator" in page
    assert 'data-again="?control=politeness&amp;wait=1"' in page
    page = text(client, f"{PAGE}?wait=1")
    assert client.services.explanations.within_s > 1 and "data-again" not in page


def test_without_time_attention_is_shown(site):
    client = site()
    client.services.explanations.complete = False
    page = text(client, f"{PAGE}?wait=1")
    assert "no time" in page and "Where they look" in page and page.count('class="panel"') == 4


@pytest.mark.parametrize("address, status", [
    (f"/projects/{NUMBER}/tasks/999999/explanation", 404), (f"/projects/{NUMBER}/tasks/x/explanation", 404),
    (f"/projects/{NUMBER}/tasks/{'9' * 30}/explanation", 404), ("/projects/99/tasks/1/explanation", 404),
    (f"{PAGE}?by=x", 400), (f"{PAGE}?control=x", 400), (f"{PAGE}?annotator=99", 404),
    (f"{API}.json?annotator=99", 404), (f"{API}.png?image=5", 400), (f"{API}.png?annotator=3&annotator=4", 400),
    (f"{API}.png?by=attribution", 400), (f"{API}.png?image=x", 404)])
def test_what_is_asked_wrongly_is_refused(site, address, status):
    assert site().get(address).status_code == status


@pytest.mark.parametrize("damaged", [False, True])
def test_an_overlay_is_a_picture_even_of_a_damaged_file(site, damaged):
    client = site()
    client.services.explanations.damaged = damaged
    answer = client.get(f"{API}.png?annotator=3&image=0")
    assert answer.status_code == 200 and answer.mimetype == "image/png"
    picture = Image.open(io.BytesIO(answer.data))
    assert picture.size == ((320, 320) if damaged else (320, 240))
    assert client.get(f"{API}.png").status_code == 200  # of all


def test_masked_explanations_hold_no_id(site):
    client = site(mask_names=True)
    said = client.get(f"{API}.json").json["annotators"]
    assert [each["annotator"] for each in said] == ["annotator-1", "annotator-2", "annotator-3"]
    assert "example.org" not in client.get(f"{API}.json").get_data(as_text=True) + text(client, PAGE)
    assert client.get(f"{API}.json?annotator=annotator-2").status_code == 200
    assert client.get(f"{API}.json?annotator=4").status_code == 404


def test_before_there_are_figures_names_are_those_of_the_votes(site):
    client = site(documents=False)
    assert "annotator4@example.org" in text(client, f"{PAGE}?annotator=4")


def test_an_unchanged_page_is_not_made_again(site):
    client = site()
    first = client.get(PAGE)
    asked = len(client.services.explanations.asked)
    assert client.get(PAGE, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304
    assert len(client.services.explanations.asked) == asked
    client.services.explanations.lead = 0.3
    assert client.get(PAGE).headers["ETag"] != first.headers["ETag"]


def test_a_page_that_ran_out_of_time_is_made_again(site):
    client = site()
    client.services.explanations.complete = False
    first = client.get(PAGE)
    assert first.status_code == 200 and "ETag" not in first.headers
    asked = len(client.services.explanations.asked)
    client.services.explanations.complete = True
    assert "ETag" in client.get(PAGE).headers
    assert len(client.services.explanations.asked) == asked + 1


def test_pages_are_light(site):
    client = site(Writer())
    assert len(client.get(PAGE).data) < 60_000 and EVIL not in text(client, PAGE)


def test_a_profile_shows_the_words_that_move_somebody(site):
    page = text(site(), f"/projects/{NUMBER}/annotators/3")
    assert "What content moves their labels" in page and "please" in page and "+0.200" in page
    assert "mostly the same words move everybody" in page
    assert "What content moves" not in text(site(), f"/projects/{NUMBER}/annotators/6")


def test_words_that_explain_nothing_are_not_shown(site):
    client, writer = site(), Writer()
    bodies = {("attributions", "3"): encode(writer.attributions("3", lead=0.01))}
    client.services.store.statistics.replace(KEY, "r4", bodies, kinds=["attributions"])
    page = text(client, f"/projects/{NUMBER}/annotators/3")
    assert "Nothing that could be shown" in page and "please" not in page.split("What content moves")[1].split("<h3")[0]


def test_words_as_data(site):
    client = site(mask_names=True)
    answer = client.get(f"/api/projects/{NUMBER}/annotators/annotator-1/words").json
    assert answer["annotator"] == "annotator-1" and answer["controls"]["politeness"]["words"][0]["word"] == "please"
    assert client.get(f"/api/projects/{NUMBER}/annotators/annotator-5/words").status_code == 404
    assert client.get(f"/api/projects/{NUMBER}/annotators/3/words").status_code == 404
