"""Consensus as annotations of a service account: sure ones only, once, in nobody's name, and never a vote."""

import pytest

from backend.cli import main
from backend.errors import ClientError, LabelStudioError
from backend.labeling.annotations import read_task
from backend.services.gaps.annotate import annotate
from tests.backend.services.gaps.test_fill import board_of
from tests.backend.services.politeness import LABEL_STUDIO_ID
from tests.backend.services.workshop import silent

ACCOUNT = 77


class Office:
    """Label Studio as far as the account that signs sees it; a task is gone, and one request may fail."""

    def __init__(self, config):
        self.config = config
        self.annotations = {}  # task -> list of annotations
        self.calls, self.gone, self.fails_at, self.account = 0, set(), None, ACCOUNT

    def who(self):
        return str(self.account), "service@example.org"

    def annotate(self, task_id, result):
        if self.fails_at == sum(map(len, self.annotations.values())):
            raise LabelStudioError("Label Studio answered 502.", retry=True, http_status=502)
        made = {"id": 1000 + task_id, "completed_by": self.account, "result": list(result), "was_cancelled": False,
                "created_at": "2026-11-02T12:00:00Z", "updated_at": "2026-11-02T12:00:00Z", "lead_time": None}
        self.annotations.setdefault(task_id, []).append(made)

    def tasks_by_id(self, project_id, ids):
        assert project_id == LABEL_STUDIO_ID
        self.calls += 1
        return {task: {"id": task, "data": {"text": "x"}, "annotations": self.annotations.get(task, [])}
                for task in ids if task not in self.gone}


def test_what_is_sure_is_written_once_and_is_no_vote(shop):
    board = board_of(shop)
    office = Office(board.config)
    found = annotate(board, office, office, at_least=0.8, progress=silent)
    assert found.account == "service@example.org" and found.written == len(office.annotations) > 5
    assert found.written + found.unsure == 60 and found.there == 0 and found.unsure > 0
    assert office.calls == 1  # not one for each task
    again = annotate(board, office, office, at_least=0.8, progress=silent)
    assert (again.written, again.there) == (0, found.written)
    for task, raw in office.tasks_by_id(LABEL_STUDIO_ID, list(office.annotations)).items():
        assert {region["meta"]["text"][0].split(":")[0] for region in raw["annotations"][0]["result"]} == {
            "Predicted by Polyvox, nobody's own label"}
        read = read_task(board.config, raw, project_id=LABEL_STUDIO_ID, control_arm_percent=0.0, shown_since=None,
                         known_annotators={})
        assert len(read.annotations) == 1 and list(read.votes) == [], task
        raw["annotations"][0]["result"] = [{**region, "meta": {}} for region in raw["annotations"][0]["result"]]
        assert read_task(board.config, raw, project_id=LABEL_STUDIO_ID, control_arm_percent=0.0, shown_since=None,
                         known_annotators={}).votes  # it is the mark that makes the difference


def test_a_run_that_broke_is_repeated_and_tasks_that_are_gone_are_left(shop):
    board = board_of(shop)
    office = Office(board.config)
    office.fails_at, office.gone = 3, {2}
    with pytest.raises(LabelStudioError, match="502"):
        annotate(board, office, office, at_least=0.0, progress=silent)
    assert len(office.annotations) == 3
    office.fails_at = None
    found = annotate(board, office, office, at_least=0.0, progress=silent)
    assert (found.written, found.there) == (56, 3) and 2 not in office.annotations
    assert all(len(each) == 1 for each in office.annotations.values())


def test_nobody_who_labels_may_sign(shop):
    board = board_of(shop)
    office = Office(board.config)
    office.account = 1
    with pytest.raises(ClientError, match="Account 1 labels in this project"):
        annotate(board, office, office, at_least=0.5, progress=silent)
    assert not office.annotations


def test_wrong_use_of_the_command_is_a_sentence(tmp_path, capsys):
    place = {"POLYVOX_DATA_DIR": str(tmp_path)}
    assert main(["annotate", "12", "--at-least", "90"], place) != 0
    assert "from 0 to 1" in capsys.readouterr().err
    assert main(["annotate", "12"], place) != 0
    assert "LABEL_STUDIO_API_KEY" in capsys.readouterr().err
    assert main(["annotate", "12", "--token-file", str(tmp_path / "none")], place) != 0
    assert "cannot be read" in capsys.readouterr().err
