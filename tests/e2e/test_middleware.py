"""Own pre-annotations in a real Label Studio: what each annotator is shown, and what is left alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser

from demo.client import Account, choice
from labelstudio.control_arm import in_control_arm
from tests.e2e.browser import log_in, open_quick_view, open_stream, prediction_tabs, selected_choice
from tests.e2e.conftest import CONTROL_ARM_PERCENT
from tests.e2e.server import LabelStudio

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]  # the first start of Label Studio may take minutes


def withheld(project: int, task: int, account: Account) -> bool:
    return in_control_arm(project, task, str(account.id), CONTROL_ARM_PERCENT)


def shown_to_all(label_studio: LabelStudio, text: str) -> tuple[int, int]:
    """A project with one task that is in nobody's control arm."""
    annotators = label_studio.annotators
    return label_studio.project_with_one_task(
        lambda project, task: not any(withheld(project, task, account) for account in annotators), text
    )


class Answers:
    """What the three addresses answer to one browser session."""

    def __init__(self, label_studio: LabelStudio, account: Account, project: int, task: int) -> None:
        session, base = label_studio.session(account), label_studio.url
        self.stored = {each["id"]: each["model_version"] for each in label_studio.owner.call(
            "GET", f"/api/tasks/{task}", params={"project": project})["predictions"]}
        self.responses = {
            "next": session.get(f"{base}/api/projects/{project}/next", timeout=60),
            "stream": session.post(f"{base}/api/dm/actions?id=next_task&project={project}", json={}, timeout=60),
            "task": session.get(f"{base}/api/tasks/{task}?project={project}", timeout=60),
            "task without slash": session.get(f"{base}/api/tasks/{task}/", timeout=60),
        }

    def versions(self) -> dict[str, list[str]]:
        """Names as they are stored, by the ids: what is shown is a title."""
        return {
            name: [self.stored[each["id"]] for each in predictions_in(response)]
            for name, response in self.responses.items()
        }

    def titles(self) -> set[str]:
        """What the editor would show, at all addresses."""
        return {each["model_version"] for response in self.responses.values() for each in predictions_in(response)}

    def everywhere(self) -> list[str]:
        """The one answer that all addresses give."""
        versions = list(self.versions().values())
        assert all(one == other for one, other in pairwise(versions)), self.versions()
        return versions[0]

    def query_counts(self) -> set[int]:
        timings = [response.headers["Server-Timing"] for response in self.responses.values()]
        return {int(timing.split('polyvox-queries;desc="')[1].split('"')[0]) for timing in timings}


def predictions_in(response: requests.Response) -> list[dict[str, Any]]:
    response.raise_for_status()
    body: dict[str, Any] = response.json()
    return list(body["predictions"])


def versions_in(response: requests.Response) -> list[str]:
    return [prediction["model_version"] for prediction in predictions_in(response)]


def test_two_annotators_see_two_labels_and_a_third_the_consensus(label_studio: LabelStudio, browser: Browser) -> None:
    first, second, third, _ = label_studio.annotators
    text = "Send me the file."
    project, task = shown_to_all(label_studio, text)
    own = {f"annotator:{first.id}@r1": "Polite", f"annotator:{second.id}@r1": "Impolite", "consensus@r1": "Neutral"}
    label_studio.predict(project, task, own)
    expected = {first: ("Polite", "For you, r1"), second: ("Impolite", "For you, r1"),
                third: ("Neutral", "Consensus, r1")}
    for number, (account, (label, title)) in enumerate(expected.items(), start=1):
        page = log_in(browser, label_studio, account)
        open_stream(page, project, text)
        assert selected_choice(page) == label, f"stream, annotator {number}"
        open_quick_view(page, project, task, text)
        assert selected_choice(page) == label, f"quick view, annotator {number}"
        assert prediction_tabs(page) == [title]
        page.context.close()


def test_a_control_arm_pair_sees_nothing_and_others_on_the_same_task_do(
    label_studio: LabelStudio, browser: Browser
) -> None:
    first, second, *_ = label_studio.annotators
    text = "Close the ticket."
    project, task = label_studio.project_with_one_task(
        lambda project, task: withheld(project, task, first) and not withheld(project, task, second), text
    )
    own = {f"annotator:{first.id}@r1": "Polite", f"annotator:{second.id}@r1": "Impolite", "consensus@r1": "Neutral"}
    label_studio.predict(project, task, own)
    page = log_in(browser, label_studio, first)
    open_stream(page, project, text)
    assert selected_choice(page) is None
    open_quick_view(page, project, task, text)
    assert selected_choice(page) is None
    assert prediction_tabs(page) == []
    page.context.close()
    assert Answers(label_studio, first, project, task).everywhere() == []
    assert Answers(label_studio, second, project, task).everywhere() == [f"annotator:{second.id}@r1"]


def test_the_newest_version_is_served_with_few_queries_and_ids_are_compared_whole(label_studio: LabelStudio) -> None:
    first, second, *_ = label_studio.annotators
    project, task = shown_to_all(label_studio, "Could you look at this?")
    lookalikes = {f"annotator:{first.id}0@r99": "Impolite", f"annotator:1{first.id}@r99": "Impolite"}
    own = {f"annotator:{first.id}@r10": "Neutral", f"annotator:{first.id}@r9": "Polite"}
    label_studio.predict(project, task, {**lookalikes, **own, "consensus@r9": "Polite", "consensus@r10": "Neutral"})
    answers = Answers(label_studio, first, project, task)
    assert answers.everywhere() == [f"annotator:{first.id}@r10"]
    assert max(answers.query_counts()) <= 2
    # The owner selected an older version meanwhile: still the newest, for those without an own prediction too.
    label_studio.owner.update_project(project, model_version="consensus@r9")
    assert Answers(label_studio, second, project, task).everywhere() == ["consensus@r10"]


def test_a_served_own_prediction_is_complete(label_studio: LabelStudio) -> None:
    """In the stream we write the prediction, since Label Studio did not serve it; in the quick view it did."""
    first = label_studio.annotators[0]
    project, task = shown_to_all(label_studio, "Thanks a lot for the quick help.")
    label_studio.predict(project, task, {f"annotator:{first.id}@r1": "Polite", "consensus@r1": "Neutral"})
    answers = Answers(label_studio, first, project, task)
    by_us, by_label_studio = (answers.responses[name].json()["predictions"][0] for name in ("stream", "task"))
    by_us.pop("created_ago"), by_label_studio.pop("created_ago")
    assert by_us == by_label_studio
    assert by_us["result"][0]["value"] == {"choices": ["Polite"]}
    assert answers.titles() == {"For you, r1"}


def test_api_tokens_see_everything(label_studio: LabelStudio) -> None:
    first, second, *_ = label_studio.annotators
    project, task = shown_to_all(label_studio, "No.")
    own = {f"annotator:{first.id}@r1": "Polite", f"annotator:{second.id}@r1": "Impolite", "consensus@r1": "Neutral"}
    label_studio.predict(project, task, own)
    bearer = label_studio.owner.access_token(first.personal_token)
    for authorization in (f"Token {first.token}", f"Bearer {bearer}"):
        headers = {"Authorization": authorization}
        answer = requests.get(f"{label_studio.url}/api/tasks/{task}", headers=headers, timeout=60)
        assert versions_in(answer) == list(own)
        assert "Server-Timing" not in answer.headers
        answer = requests.get(f"{label_studio.url}/api/projects/{project}/next", headers=headers, timeout=60)
        assert versions_in(answer) == ["consensus@r1"]
    # A token beside a logged-in browser's cookies still counts as a token.
    session = label_studio.session(first)
    answer = session.get(
        f"{label_studio.url}/api/tasks/{task}", headers={"Authorization": f"Token {first.token}"}, timeout=60
    )
    assert versions_in(answer) == list(own)


def test_nothing_is_shown_where_the_project_switched_predictions_off(label_studio: LabelStudio) -> None:
    first = label_studio.annotators[0]
    project, task = shown_to_all(label_studio, "You may want to check the manual first.")
    label_studio.predict(project, task, {f"annotator:{first.id}@r1": "Polite", "consensus@r1": "Neutral"})
    label_studio.owner.update_project(project, show_collab_predictions=False)
    assert Answers(label_studio, first, project, task).everywhere() == []


def test_other_tools_are_seen_where_polyvox_has_nothing_for_the_annotator(label_studio: LabelStudio) -> None:
    first, second, *_ = label_studio.annotators
    project, task = shown_to_all(label_studio, "As I said twice already: no.")
    label_studio.predict(project, task, {"another-tool": "Neutral", f"annotator:{first.id}@r1": "Polite"})
    label_studio.owner.update_project(project, model_version="another-tool")
    assert Answers(label_studio, first, project, task).everywhere() == [f"annotator:{first.id}@r1"]
    others = Answers(label_studio, second, project, task)
    assert others.everywhere() == ["another-tool"] and others.titles() == {"another-tool"}


def test_a_draft_stays_what_the_annotator_sees(label_studio: LabelStudio, browser: Browser) -> None:
    first = label_studio.annotators[0]
    text = "I would be glad if you could have a look."
    project, task = shown_to_all(label_studio, text)
    label_studio.predict(project, task, {f"annotator:{first.id}@r1": "Polite", "consensus@r1": "Neutral"})
    draft = {"result": [choice("polite", "text", "Impolite")], "lead_time": 1.0}
    label_studio.as_annotator(first).call("POST", f"/api/tasks/{task}/drafts", json=draft)
    answers = Answers(label_studio, first, project, task)
    assert [len(response.json()["drafts"]) for response in answers.responses.values()] == [1, 1, 1, 1]
    page = log_in(browser, label_studio, first)
    open_stream(page, project, text)
    assert selected_choice(page) == "Impolite"
    open_quick_view(page, project, task, text)
    assert selected_choice(page) == "Impolite"
    page.context.close()


def test_annotations_in_the_answer_are_left_alone(label_studio: LabelStudio) -> None:
    first, second, *_ = label_studio.annotators
    project, task = shown_to_all(label_studio, "Hi there, any news on this one?")
    own = {f"annotator:{first.id}@r1": "Polite", f"annotator:{second.id}@r1": "Impolite", "consensus@r1": "Neutral"}
    label_studio.predict(project, task, own)
    for account, label in ((first, "Polite"), (second, "Neutral")):
        label_studio.as_annotator(account).annotate(task, [choice("polite", "text", label)])
    answer = label_studio.session(first).get(f"{label_studio.url}/api/tasks/{task}", timeout=60)
    assert [each["completed_by"]["id"] for each in answer.json()["annotations"]] == [first.id, second.id]
    assert versions_in(answer) == ["For you, r1"], "nobody's tab but the own one, after labelling too"
