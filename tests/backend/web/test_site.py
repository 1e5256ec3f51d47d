"""The QA site: pages say what the API says, nothing runs that a name or a text brings along, and no page is slow."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from statistics import median
from types import SimpleNamespace
from urllib.parse import urljoin

import pytest

from backend.app import create_app
from backend.records import JobKind
from backend.report.pages import flag_id
from backend.services.gaps.service import GapFilling
from backend.services.statistics.codec import encode
from model.data.spaces import Value
from tests.backend.web.site_documents import CONTROL, KEY, NOW, NUMBER, Writer

PAGES = ("overview", "annotators", "annotators/3", "tasks", "tasks?list=divided", "tasks?list=all", "flags",
         "flags?state=all", "gaps")
ADDRESSES = ("/projects", *(f"/projects/{NUMBER}/{page}" for page in PAGES))
MOST_BYTES = 300_000


@pytest.fixture
def site(services_with):
    """What writes a project and gives a client for it."""
    def make(writer=None, *, gaps=True, documents=True, **settings):
        services = services_with(label_studio_url="http://localhost:8080", **settings)
        (writer or Writer()).write(services.store, gaps=gaps, documents=documents)
        client = create_app(services, SimpleNamespace()).test_client()
        client.services = services
        return client

    return make


def text(client, address, status=200):
    answer = client.get(address)
    assert answer.status_code == status, f"{address}: {answer.status_code} {answer.get_data(as_text=True)[:300]}"
    return answer.get_data(as_text=True)


def test_every_page_opens_and_links_work(site):
    client = site()
    for address in ADDRESSES:
        page = text(client, address)
        links = re.findall(r'(?:href|src)="(?!http|#|data:)([^"]*)"', page)
        base = client.application.url_map.bind("localhost")
        for link in set(links):
            there = "/" + _joined(address.partition("?")[0], link.partition("?")[0].partition("#")[0])
            assert base.match(there), (address, link)


def test_the_address_of_a_project_leads_to_its_overview(site):
    """As browsers resolve it; the test client would do so otherwise."""
    there = site().get(f"/projects/{NUMBER}").location
    assert urljoin(f"https://host/behind/projects/{NUMBER}", there) == f"https://host/behind/projects/{NUMBER}/overview"


def _joined(page, link):
    parts = [] if not link else page.split("/")[1:-1]
    for step in (link or page[1:]).split("/"):
        if step == "..":
            parts.pop()
        elif step not in (".", ""):
            parts.append(step)
    return "/".join(parts)


def test_pages_say_what_the_api_says(site):
    client = site()
    overview = client.get(f"/api/projects/{NUMBER}").json
    page = text(client, f"/projects/{NUMBER}/overview")
    alpha = overview["controls"][0]["agreement"]["alpha"]
    assert f"α = {alpha['value']:.2f} ({alpha['low']:.2f} to {alpha['high']:.2f})" in page
    assert f"<b>{alpha['value']:.2f}</b>" in page and "1 is perfect, 0 is what guessing would reach" in page
    served = overview["controls"][0]["ladder"]["heldout"][0]
    assert f"<b>{served['accuracy'] * 100:.0f}\u202f%</b> <span>of {served['votes']} held-out votes" in page
    for tasks in overview["coverage"]["votes_per_task"]:
        assert f">{tasks}</text>" in page or not tasks
    people = client.get(f"/api/projects/{NUMBER}/annotators").json["rows"]
    page = text(client, f"/projects/{NUMBER}/annotators").split("<tbody>")[1].replace("<wbr>", "")
    for row in people:
        cells = page[page.index(f'annotators/{row["annotator"]}"><bdi>{row["name"]}'):].split("</tr>")[0]
        assert f">{row['votes']}<" in cells and f"{row['accuracy'] * 100:.0f}\u202f%" in cells
        assert f"{row['predicted'] * 100:.0f}\u202f%" in cells
    hardest = client.get(f"/api/projects/{NUMBER}/tasks?limit=5").json["rows"]
    page = text(client, f"/projects/{NUMBER}/tasks")
    assert [int(each) for each in re.findall(r'data\?task=(\d+)"', page)][:5] == [row["task"] for row in hardest]


def test_the_overview_answers_four_questions_and_says_what_to_do(site):
    client = site()
    page = text(client, f"/projects/{NUMBER}/overview")
    lead = page.split("What the answers rest on")[0]
    questions = re.findall(r'<h2 id="\w+">([^<]*)</h2>', lead)
    assert questions == ["Is it done?", "Do they agree?", "Can the model be trusted?", "What next?"]
    for answer in lead.split("<article")[1:]:
        assert answer.count('class="large"') == 1 and answer.count('role="img"') == 1  # one figure, one plot
    assert "This is the figure to believe" in lead
    assert "Check 40 votes that may be slips" in lead and "Look at" in lead
    flag = flag_id(Writer().flags().rows[0])
    client.post(f"/api/projects/{NUMBER}/flags/check", json={"flag": flag, "verdict": "fine"})
    assert "Check 39 votes" in text(client, f"/projects/{NUMBER}/overview")
    text(site(gaps=False), f"/projects/{NUMBER}/overview")


def test_whoever_deserves_a_look_comes_first(site):
    """The second annotator has a fault, and the third changed; nobody is sorted by how much they did."""
    page = text(site(), f"/projects/{NUMBER}/annotators").split("<tbody>")[1]
    assert re.search(r'annotators/(\d+)"><bdi>', page)[1] == "4"
    assert text(site(), f"/projects/{NUMBER}/annotators?columns=all").count("<th scope=\"col\"") > 10


def test_the_matrix_of_agreement_leads_to_the_tasks_on_which_two_differ(site):
    client = site(Writer(annotators=30))
    page = text(client, f"/projects/{NUMBER}/annotators").split("Who agrees with whom</h2>")[1]
    assert "20 annotators, the most active of 30" in page and "the same label on 38 of 40" in page
    link = re.search(r'href="\.\./\.\./([^"]*one=3&amp;other=5[^"]*)"[^>]*>95<', page)[1].replace("&amp;", "&")
    assert "0 tasks" in text(client, f"/{link}")  # in the votes that the store has, nobody shares a task
    text(client, f"/projects/{NUMBER}/tasks?list=differ&one=3&other=nobody", 400)


def test_tasks_on_which_two_differ(site):
    client, writer = site(), Writer()
    first = writer._snapshot(6)  # of the first annotator; the second says something else
    second = replace(first.votes[0], annotator="4", value=Value.of_class("Impolite"), annotation_id=77)
    third = replace(first.votes[0], annotator="5", annotation_id=78)
    both = [replace(first.annotations[0], id=each.annotation_id, annotator=each.annotator)
            for each in (first.votes[0], second, third)]
    client.services.store.tasks.take_over(
        KEY, [replace(first, annotations=both, votes=[*first.votes, second, third])])
    page = text(client, f"/projects/{NUMBER}/tasks?list=differ&one=3&other=4")
    assert "1 task<" in page and "data?task=6" in page and "<bdi>Impolite</bdi>" in page
    assert "0 tasks" in text(client, f"/projects/{NUMBER}/tasks?list=differ&one=3&other=5")


def test_tasks_flags_and_gaps_are_searched_by_words_and_numbers(site):
    writer = Writer()
    writer.texts[7] = "An Owl, at night"
    client = site(writer)
    for page in ("tasks?", "tasks?list=divided&", "tasks?list=all&", "flags?", "gaps?"):
        for words in ("oWL", "7"):
            shown = text(client, f"/projects/{NUMBER}/{page}q={words}")
            assert set(re.findall(r'class="task" href="[^"]*task=(\d+)"', shown)) == {"7"}, (page, words)
    found = text(client, f"/projects/{NUMBER}/tasks?list=all&label=Polite&q=Please")
    assert {int(each) % 3 for each in re.findall(r'data\?task=(\d+)"', found)} == {0}
    only = text(client, f"/projects/{NUMBER}/gaps?annotator=4")
    assert set(re.findall(r'<td data-label="Annotator"><a href="[^"]*annotators/(\d+)"', only)) == {"4"}
    assert client.get(f"/api/projects/{NUMBER}/flags?q=owl").json["total"] == 1


def test_every_page_links_to_the_project_in_label_studio(site):
    client = site()
    for address in ADDRESSES[1:]:
        assert f'href="http://localhost:8080/projects/{NUMBER}/data"' in text(client, address), address


def test_agreement_on_regions_is_on_the_overview_as_in_the_api(site):
    client = site()
    page = text(client, f"/projects/{NUMBER}/overview").split("agreement on regions</h2>")[1]
    assert "F1 = 62\u202f% (55\u202f% to 68\u202f%)" in page and "overlap by 0.81 (IoU, mean)" in page
    assert "1 region without a place left out" in page
    for row in client.get(f"/api/projects/{NUMBER}/regions").json["rows"]:
        cells = page[page.index(f"<bdi>annotator{row['annotator']}@example.org</bdi></th>"):].split("</tr>")[0]
        assert f"<bdi>annotator{row['other']}@example.org</bdi>" in cells and f">{row['tasks']}<" in cells
        assert f"<b>{row['f1'] * 100:.0f}\u202f%</b>" in cells
    hidden = site(mask_names=True)
    assert "Annotator 1</bdi></th>" in text(hidden, f"/projects/{NUMBER}/overview").split("on regions</h2>")[1]
    assert hidden.get(f"/api/projects/{NUMBER}/regions").json["rows"][0]["annotator"] == "annotator-1"


def test_without_regions_there_is_no_section_and_the_api_says_so(site):
    client = site(documents=False)
    answer = client.get(f"/api/projects/{NUMBER}/regions")
    assert answer.status_code == 404 and "no control of this project draws any" in answer.json["error"]


def test_tasks_link_into_label_studio(site):
    page = text(site(), f"/projects/{NUMBER}/flags")
    assert f'href="http://localhost:8080/projects/{NUMBER}/data?task=1"' in page


class Tags(HTMLParser):
    """What a browser would find in a page: the scripts, and the names of all attributes."""

    def __init__(self):
        super().__init__()
        self.scripts, self.attributes = [], set()

    def handle_starttag(self, tag, attrs):
        self.attributes |= {name for name, _ in attrs}
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))


@pytest.mark.parametrize("address", ADDRESSES)
def test_names_labels_and_texts_run_nothing(address, site):
    client = site(Writer(evil=True))
    answer = client.get(address)
    page = answer.get_data(as_text=True)
    assert answer.status_code == 200
    assert "<script>window" not in page and "<img src=x" not in page and "49" + "}}" not in page
    assert "&lt;script&gt;" in page
    tags = Tags()
    tags.feed(page)
    assert tags.scripts == ["../" * (address.partition("?")[0].count("/") - 1) + "static/site.js"]
    assert [name for name in tags.attributes if name == "style" or name.startswith("on")] == []
    policy = answer.headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'",
                 "form-action 'self'", "base-uri 'none'"):
        assert rule in policy.split("; ")


def test_masked_names_are_nowhere(site):
    client = site(mask_names=True)
    api = [f"/api/projects/{NUMBER}/{name}" for name in (
        "annotators", "annotators?format=csv", "annotators/annotator-2", "tasks?list=divided", "flags", "gaps",
        "gaps/matrix", "blind")]
    addresses = [each.replace("annotators/3", "annotators/annotator-1") for each in ADDRESSES]
    for address in (*addresses, *api):
        page = text(client, address)
        assert "example.org" not in page, address
    assert "Annotator 1" in text(client, f"/projects/{NUMBER}/annotators")
    text(client, f"/projects/{NUMBER}/annotators/3", 404)  # ids do not open a profile either


def test_a_project_may_mask_its_names_alone(site):
    client = site()
    client.services.store.projects.update_settings(KEY, {"mask_names": True})
    assert "example.org" not in text(client, f"/projects/{NUMBER}/annotators")


def test_a_project_without_figures_says_so_and_what_to_do(site):
    client = site(documents=False)
    for page in ("overview", "annotators", "tasks", "flags", "gaps"):
        shown = text(client, f"/projects/{NUMBER}/{page}")
        assert "There are no figures of this project yet" in shown and "python -m backend worker" in shown
    assert "no figures yet" in text(client, "/projects")
    answer = client.get(f"/api/projects/{NUMBER}/flags")
    assert answer.status_code == 404 and "python -m backend worker" in answer.json["error"]


def test_without_gaps_there_is_coverage(site):
    page = text(site(gaps=False), f"/projects/{NUMBER}/gaps")
    assert "Who labelled how much" in page and "not computed for this project yet" in page
    assert "Votes that would help most" in text(site(gaps=True), f"/projects/{NUMBER}/gaps")


def test_gaps_that_were_computed_anew_are_sent_anew(site):
    """Of the same votes: more may be encoded by then."""
    client = site()
    services, tags = client.services, []
    for minute in range(2):
        gaps = GapFilling(store=services.store, label_studio=None, features=None, settings=services.settings,
                          registry=services.registry, clock=lambda at=minute: NOW + timedelta(minutes=at))
        assert gaps.run(KEY, lambda *_: None, force=True)["computed"]
        tags.append(client.get(f"/projects/{NUMBER}/gaps").headers["ETag"])
    address = f"/projects/{NUMBER}/gaps"
    assert [client.get(address, headers={"If-None-Match": tag}).status_code for tag in tags] == [200, 304]


def test_no_votes_one_annotator_one_task(site):
    text(site(Writer(tasks=1, annotators=1)), f"/projects/{NUMBER}/overview")
    client, writer = site(), Writer()
    empty = replace(writer.overview(), controls=(), training=(), problem="Nobody has labelled anything yet.")
    nobody = replace(writer.annotators(), rows=())
    bodies = {("overview", ""): empty, ("annotators", ""): nobody, ("tasks", ""): replace(writer.lists(), controls={}),
              ("flags", ""): replace(writer.flags(), rows=(), votes=0, uses=())}
    client.services.store.statistics.replace(KEY, "v2", {key: encode(each) for key, each in bodies.items()})
    assert "Nobody has labelled anything yet." in text(client, f"/projects/{NUMBER}/overview")
    for page in ("annotators", "tasks", "flags", "gaps"):
        text(client, f"/projects/{NUMBER}/{page}")


@pytest.mark.parametrize("address, words", [
    ("/projects/99/overview", "no such project"), ("/projects/99", "no such project"),
    (f"/projects/{NUMBER}/annotators/nobody", "no such annotator"),
    (f"/projects/{NUMBER}/flags?state=maybe", "state takes open or fine or slip or all"),
    (f"/projects/{NUMBER}/tasks?sort=nothing", "sort takes one of task"),
    (f"/projects/{NUMBER}/tasks?page=0", "page takes a whole number from 1"),
    (f"/projects/{NUMBER}/annotators?control=other", "control takes"),
    (f"/projects/{NUMBER}/annotators?order=up", "order takes asc or desc")])
def test_what_cannot_be_shown_is_said_in_a_sentence(address, words, site):
    answer = site().get(address)
    assert answer.status_code in (400, 404) and words in answer.get_data(as_text=True)


def test_tables_are_ordered_filtered_and_paged(site):
    client = site(Writer(tasks=60))
    base = f"/projects/{NUMBER}/flags"
    page = text(client, f"{base}?annotator=4&reason=speed")
    numbers = [int(each) for each in re.findall(r'id="flag-[^>]*>\s*<th[^>]*><a[^>]*>(\d+)<', page)]
    assert numbers and all(each % 2 and each % 6 == 1 for each in numbers)
    assert "page 2 of 3" in text(client, f"{base}?page=2")
    page = text(client, f"/projects/{NUMBER}/annotators?sort=votes&order=asc")
    assert 'aria-sort="ascending"' in page
    shown = re.findall(r'annotators/(\d+)"><bdi>annotator', page.split("<tbody>")[1])
    assert shown == sorted(shown, reverse=True)  # later ones have fewer votes
    assert "1 annotator<" in text(client, f"/projects/{NUMBER}/annotators?q=ANNOTATOR5")
    assert "Nobody is called so" in text(client, f"/projects/{NUMBER}/annotators?q=zz")


def test_a_flag_is_checked_by_a_form_and_taken_back(site):
    client = site()
    flag = flag_id(Writer().flags().rows[0])
    here = {"Sec-Fetch-Site": "same-origin"}
    form = {"flag": flag, "verdict": "slip", "back": "state=all"}
    answer = client.post(f"/projects/{NUMBER}/flags", data=form, headers=here)
    assert answer.status_code == 303 and answer.headers["Location"].endswith(f"flags?state=all#flag-{flag}")
    assert flag not in text(client, f"/projects/{NUMBER}/flags")
    assert flag in text(client, f"/projects/{NUMBER}/flags?state=slip")
    (check,) = client.services.store.statistics.checks(KEY)
    assert (check.unit, check.control, check.verdict) == ("1", CONTROL, "slip")
    client.post(f"/projects/{NUMBER}/flags", data=form, headers=here)
    assert client.services.store.statistics.checks(KEY) == []


@pytest.mark.parametrize("headers, as_json, allowed", [
    ({"Sec-Fetch-Site": "same-origin"}, False, True), ({"Sec-Fetch-Site": "cross-site"}, False, False),
    ({"Sec-Fetch-Site": "same-site"}, False, False), ({"Sec-Fetch-Site": "none"}, False, False),
    ({"Origin": "http://localhost"}, False, True), ({"Origin": "https://polyvox.example.org"}, False, True),
    ({"Origin": "http://evil.example"}, False, False), ({"Origin": "http://["}, False, False),
    ({"Origin": "null"}, False, False), ({}, False, False),
    ({}, True, True), ({"Origin": "http://evil.example"}, True, False), ({"Origin": "null"}, True, False),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"}, True, False)])
def test_changes_come_from_our_own_pages_or_from_programs(headers, as_json, allowed, site):
    client = site(url="https://polyvox.example.org")
    asked = {"flag": flag_id(Writer().flags().rows[0]), "verdict": "fine"}
    if as_json:
        answer = client.post(f"/api/projects/{NUMBER}/flags/check", json=asked, headers=headers)
    else:
        answer = client.post(f"/projects/{NUMBER}/flags", data=asked, headers=headers)
    assert (answer.status_code in (200, 303)) is allowed
    assert bool(client.services.store.statistics.checks(KEY)) is allowed
    if not allowed:
        assert answer.status_code == 403 and "another site" in answer.get_data(as_text=True)


def test_a_form_cannot_reach_the_api(site):
    """A form of another site may send text/plain without being asked for leave; JSON it may not."""
    asked = json.dumps({"flag": flag_id(Writer().flags().rows[0]), "verdict": "fine"})
    answer = site().post(f"/api/projects/{NUMBER}/flags/check", data=asked, headers={"Content-Type": "text/plain"})
    assert answer.status_code in (403, 415)


def test_pages_are_behind_the_login(site):
    client = site(basic_auth_user="me", basic_auth_pass="secret")
    for address in (*ADDRESSES, f"/api/projects/{NUMBER}", "/api/projects"):
        answer = client.get(address)
        assert answer.status_code == 401 and "WWW-Authenticate" in answer.headers
    assert client.get("/projects", auth=("me", "secret")).status_code == 200


def test_a_page_that_did_not_change_is_not_sent_again(site):
    client = site()
    address = f"/projects/{NUMBER}/flags"
    first = client.get(address)
    again = client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304 and again.data == b""
    flag = flag_id(Writer().flags().rows[0])
    client.post(f"/api/projects/{NUMBER}/flags/check", json={"flag": flag, "verdict": "fine"})
    changed = client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200 and changed.headers["ETag"] != first.headers["ETag"]


def test_running_jobs_are_told(site):
    client = site()
    store = client.services.store
    store.jobs.enqueue(JobKind.TRAIN, KEY)
    job = store.jobs.claim("test", lease_s=60)
    store.jobs.heartbeat(job.id, "test", progress=0.43, note="network, epoch 9 of 20", lease_s=60)
    found = client.get(f"/api/projects/{NUMBER}/jobs").json
    assert found["version"] == "v1"
    assert [(each["state"], each["progress"], each["note"]) for each in found["jobs"]] == [
        ("running", 0.43, "network, epoch 9 of 20")]
    assert f'data-jobs="../../api/projects/{NUMBER}/jobs"' in text(client, f"/projects/{NUMBER}/overview")


@pytest.mark.parametrize("tasks, annotators", [(10_000, 20), (50, 2_000)])
def test_large_projects_have_small_and_quick_pages(tasks, annotators, site):
    client = site(Writer(tasks=tasks, annotators=annotators))
    client.application.add_url_rule("/noop", view_func=lambda: {}, endpoint="noop")
    first = time.perf_counter()
    sizes = {address: len(client.get(address).data) for address in ADDRESSES}
    first = (time.perf_counter() - first) / len(ADDRESSES)
    assert max(sizes.values()) < MOST_BYTES, sizes
    taken = {address: [] for address in ("/noop", *ADDRESSES)}
    for _ in range(8):
        for address, seconds in taken.items():
            begun = time.perf_counter()
            client.get(address)
            seconds.append(time.perf_counter() - begun)
    noop = min(taken.pop("/noop"))  # the quickest of 8: what else the machine does is not the pages' fault
    ratio = median(min(seconds) for seconds in taken.values()) / noop
    print(f"{tasks} tasks x {annotators} annotators: median page {ratio:.1f} x the no-op page ({noop * 1000:.2f} ms), "
          f"largest {max(sizes.values()) / 1000:.0f} kB, first time {first * 1000:.0f} ms a page")
    assert ratio < 10
