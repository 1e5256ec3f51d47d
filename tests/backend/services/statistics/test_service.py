"""Statistics of a live project: what `identify` finds, kept as documents, computed only when something changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backend.errors import JobFailed
from backend.records import JobKind, Verdict, Version
from backend.services.statistics.documents import DocumentKind
from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.data.spaces import Value
from model.quality.evidence import ControlEvidence, Evidence
from model.quality.judged import judge
from tests.backend.services.statistics.crowds import CLASSES, KEY, START, Project, crowd, vote


def test_consensus_and_scores_are_those_of_identify_before_any_version(tmp_path: Path) -> None:
    project = Project(tmp_path)
    votes, _ = crowd(1, tasks=250, swapped=True)
    project.give(votes)
    assert project.run() == {"computed": True, "votes": len(votes), "documents": 6 + 8}
    answers = AnswerMatrix.from_votes(project.store.votes.current(KEY).of_control("label"), classes=CLASSES)
    judged = judge(answers, DawidSkene(), watched=True)
    consensus = project.statistics.consensus(KEY)
    assert consensus is not None
    columns = consensus.controls["label"]
    expected = dict(zip(answers.units, judged.fitted.label, strict=True))
    assert [CLASSES[expected[unit]] for unit in columns.units] == list(columns.dawid_skene)
    table = project.statistics.annotators(KEY)
    assert table is not None
    by_id = {row.annotator: row.controls["label"] for row in table.rows}
    for at, who in enumerate(answers.annotators):
        assert by_id[who].accuracy.value == pytest.approx(judged.against.accuracy[at])
        assert by_id[who].fault == judged.faults.fault[at].value.replace("none", "")
    assert (by_id["21"].fault, by_id["22"].fault, by_id["23"].fault) == ("", "inverter", "constant")
    assert by_id["21"].unrelated, "before any version nobody can tell a rule of one's own from labels without a look"
    assert {(each.others_say, each.says) for each in by_id["22"].habits} == {("A", "C"), ("C", "A")}
    assert all(by_id[who].fault == "" and not by_id[who].habits for who in "12345")


def test_overview_counts_the_matrix_and_agreement(tmp_path: Path) -> None:
    project = Project(tmp_path)
    votes, _ = crowd(2, tasks=50)
    project.give(votes, tasks=range(60))
    project.run()
    overview = project.statistics.overview(KEY)
    assert overview is not None and overview.problem == ""
    cover = overview.coverage
    assert (cover.tasks, cover.annotators, cover.given, cover.predicted, cover.missing) == (60, 8, 400, 0, 80)
    assert cover.votes_per_task[0] == 10 and cover.votes_per_task[8] == 50
    (control,) = overview.controls
    assert control.name == "label" and control.agreement.tasks == 50 and control.ladder is None
    alpha = control.agreement.alpha
    assert alpha.low is not None and alpha.high is not None and alpha.value is not None
    assert alpha.low < alpha.value < alpha.high
    assert sum(control.consensus.histogram) == control.consensus.tasks == 50
    assert sum(n for _, n in control.consensus.classes) == 50
    assert [each.name for each in overview.unmodelled] == ["note"]


def test_nothing_is_computed_twice_and_every_change_is_seen(tmp_path: Path) -> None:
    project = Project(tmp_path)
    votes, _ = crowd(3, tasks=30)
    project.give(votes)
    assert project.run()["computed"]
    before = project.statistics.version(KEY, DocumentKind.OVERVIEW)
    assert not project.run()["computed"]
    changed = [vote(0, "1", Value.of_class("B"), 9_999)]
    project.give(changed + [each for each in votes if each.task_id == 0 and each.annotator != "1"])
    assert project.run()["computed"] and project.statistics.version(KEY, DocumentKind.OVERVIEW) != before
    flags = project.statistics.flags(KEY)
    assert flags is not None
    flag = flags.rows[0]
    project.statistics.check(
        KEY, unit=flag.unit, annotator=flag.annotator, control=flag.control, value=flag.value, verdict="slip"
    )
    assert project.store.jobs.pending(KEY, JobKind.STATISTICS) is not None
    assert project.run()["computed"]
    again = project.statistics.flags(KEY)
    assert again is not None and again.checked == 1
    same = [row for row in again.rows if (row.unit, row.annotator) == (flag.unit, flag.annotator)]
    assert [row.checked for row in same] == ["slip"]


def test_slips_are_found_well_above_their_base_rate(tmp_path: Path) -> None:
    precision, base = [], []
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        project = Project(folder)
        votes, planted = crowd(100 + seed, slips=30)
        project.give(votes)
        project.run()
        flags = project.statistics.flags(KEY)
        assert flags is not None and {"others"} <= set(flags.uses)
        hits = np.array([(row.task, row.annotator) in planted for row in flags.rows])
        ranks = np.flatnonzero(hits) + 1
        precision.append(float((np.arange(1, len(ranks) + 1) / ranks).sum() / len(planted)))
        base.append(len(planted) / len(votes))
        assert all(reason.sentence for row in flags.rows for reason in row.reasons)
        project.store.close()
    assert np.mean(precision) > 3 * np.mean(base)


def test_the_own_model_of_an_annotator_speaks_where_a_version_left_evidence(tmp_path: Path) -> None:
    votes, _ = crowd(4, tasks=40)
    usual = str(votes[1].value.data)  # what annotator 2 says of task 0
    slip = CLASSES[(CLASSES.index(usual) + 1) % 3]
    votes[0] = vote(0, "1", Value.of_class(slip), 0)
    units, people = tuple(str(task) for task in range(40)), ("1", "2")
    label = {(each.unit, each.annotator): str(each.value.data) for each in votes}
    rows = [(unit, who) for unit in range(40) for who in range(2)]
    served = np.full((80, 3), 0.05, np.float32)
    for at, (unit, who) in enumerate(rows):
        served[at, CLASSES.index(label[units[unit], people[who]])] = 0.9
    served[0] = [0.9 if name == usual else 0.05 for name in CLASSES]
    evidence = Evidence(
        units=units, annotators=people, near_duplicates=np.array([[0, 1]], np.int32), likeness=np.ones(1, np.float32),
        position=np.array([[0.0, 1.0], [1.0, 0.0]]), explained=0.8,
        controls={"label": ControlEvidence(
            classes=CLASSES, unit=np.array([r[0] for r in rows], np.int32), served=served,
            annotator=np.array([r[1] for r in rows], np.int32), prior=np.full((80, 3), 1 / 3, np.float32),
        )},
    )  # fmt: skip
    project = Project(tmp_path, evidence=evidence)
    version = project.store.versions
    project.give(votes)
    version.add(Version(
        project=KEY, name="r1", number=1, path="x", verdict=Verdict.PUBLISHED, reason="First.", changes=1,
        created_at=START, figures={"controls": {"label": {"heldout": {"served": {"votes": 9, "accuracy": 0.8,
        "log_loss": 0.5, "ece": 0.02}}, "weights": {"prior": 0.2}}}, "votes": 320, "seconds": 2.0},
    ))  # fmt: skip
    project.run()
    table, flags, overview = (project.statistics.annotators(KEY), project.statistics.flags(KEY),
                              project.statistics.overview(KEY))
    assert table is not None and flags is not None and overview is not None
    own = {row.annotator: row for row in table.rows}
    alike = project.statistics.alike(KEY)
    assert alike is not None and set(alike.controls["label"].annotators) == set(own)
    placed = [row for row in table.rows if row.position is not None]  # by agreement, whatever the version learned
    assert (table.map_explained is None) == (not placed) and own["1"].position != (0.0, 1.0)
    predictable = own["1"].controls["label"].predictability
    assert predictable is not None and predictable.votes == 40 and predictable.accuracy == pytest.approx(39 / 40)
    assert "own-model" in flags.uses
    (flag,) = [row for row in flags.rows if (row.task, row.annotator) == (0, "1")]
    assert flag.expected == usual and "own-model" in {reason.kind.value for reason in flag.reasons}
    ladder = overview.controls[0].ladder
    assert ladder is not None and ladder.version == "r1" and ladder.heldout[0].accuracy == 0.8
    assert ladder.had_i_answered is not None and ladder.had_i_answered.votes == 80 and ladder.control_arm is None
    assert overview.training[0].log_loss == 0.5
    cover = overview.coverage  # the version knows two of the eight; both have labelled every task
    assert cover.predicted == 0 and cover.missing == 0
    project.give([], tasks=[777])
    project.run()
    later = project.statistics.overview(KEY)
    assert later is not None and (later.coverage.predicted, later.coverage.missing) == (2, 6)


def test_several_choices_have_a_consensus_and_camps(tmp_path: Path) -> None:
    project = Project(tmp_path)
    rng = np.random.default_rng(8)
    votes = []
    for task in range(40):
        there = [name for name in ("x", "y") if rng.random() < 0.5]
        for who in ("1", "2", "3"):
            said = ["x"] if who == "3" and task < 6 else there
            votes.append(vote(task, who, Value.of_classes(said), len(votes), control="topics"))
    project.give(votes)
    project.run()
    overview, tasks = project.statistics.overview(KEY), project.statistics.tasks(KEY)
    assert overview is not None and tasks is not None
    (control,) = overview.controls
    assert control.kind == "classes" and control.votes == 120 and control.consensus.tasks == 40
    x, y = control.agreement.classes
    assert y.agreement is not None and x.alpha is not None and y.alpha is not None and y.alpha < 1.0
    assert 0.0 < y.agreement < 1.0 and x.share == pytest.approx(x.votes / 120)  # annotator 3 left y out six times
    assert all(len(case.camps[0].annotators) == 2 for case in tasks.controls["topics"].divided)


def test_a_profile_says_how_somebody_labels(tmp_path: Path) -> None:
    project = Project(tmp_path)
    votes, _ = crowd(5)
    project.give(votes)
    project.run()
    profile = project.statistics.profile(KEY, "23")
    assert profile is not None
    about = profile.controls["label"]
    given = {each.name: each.given for each in about.leniency}
    assert given["A"] == pytest.approx(1.0) and about.classes == CLASSES
    assert sum(map(sum, about.confusion)) == pytest.approx(120)
    assert {each.annotator for each in about.nearest} <= {str(n) for n in range(30)} - {"23"}
    assert sum(period.votes for period in about.over_time) == 120
    assert project.statistics.profile(KEY, "nobody") is None


@pytest.mark.parametrize("annotators", [1, 2])
def test_few_annotators(tmp_path: Path, annotators: int) -> None:
    project = Project(tmp_path)
    project.give([vote(task, str(who), Value.of_class(CLASSES[task % 3]), task * 9 + who)
                  for task in range(5) for who in range(1, annotators + 1)])  # fmt: skip
    project.run()
    overview = project.statistics.overview(KEY)
    assert overview is not None and overview.coverage.annotators == annotators
    alpha = overview.controls[0].agreement.alpha.value
    assert alpha is None if annotators == 1 else alpha == pytest.approx(1.0)


def test_no_votes_one_vote_and_votes_outside_the_config(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.run()
    empty = project.statistics.overview(KEY)
    assert empty is not None and "Nobody has labelled" in empty.problem and empty.controls == ()
    project.give([vote(1, "1", Value.of_class("A"), 1), vote(2, "1", Value.of_class("gone"), 2)])
    project.run()
    one = project.statistics.overview(KEY)
    assert one is not None and one.outside == 1 and one.controls[0].votes == 1
    assert one.controls[0].consensus.tasks == 1


def test_a_config_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path, config="<View><Choices")
    project.give([vote(1, "1", Value.of_class("A"), 1)])
    project.run()
    overview = project.statistics.overview(KEY)
    assert overview is not None and "cannot be read" in overview.problem


def test_deleted_tasks_leave_the_statistics(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.give(crowd(6, tasks=20)[0])
    project.store.tasks.remove(KEY, [0, 1])
    project.run()
    overview = project.statistics.overview(KEY)
    assert overview is not None and overview.coverage.tasks == 18 and overview.coverage.given == 18 * 8


def test_two_thousand_annotators(tmp_path: Path) -> None:
    project = Project(tmp_path)
    rng = np.random.default_rng(0)
    votes = [vote(int(rng.integers(100)), str(who), Value.of_class(CLASSES[int(rng.integers(3))]), who)
             for who in range(1, 2001)]  # fmt: skip
    project.give(votes)
    assert project.run()["documents"] == 2006
    table = project.statistics.annotators(KEY)
    assert table is not None and len(table.rows) == 2000 and table.rows[0].controls["label"].group is None


def test_a_project_that_is_gone_fails_with_a_sentence(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with pytest.raises(JobFailed, match="unknown"):
        project.statistics.run("9.1", lambda done, note: None)


def test_a_control_whose_tables_would_fill_the_memory_is_left_out_by_name(tmp_path: Path) -> None:
    """1,000 annotators x 260 x 260 classes are beyond the half gigabyte of a table; the other control is judged."""
    names = [f"c{at}" for at in range(260)]
    choices = "".join(f'<Choice value="{name}"/>' for name in names)
    project = Project(tmp_path, config=f"""<View><Text name="text" value="$text"/><Choices name="huge" toName="text">
{choices}</Choices><Choices name="small" toName="text"><Choice value="A"/><Choice value="B"/></Choices></View>""")
    rng = np.random.default_rng(0)
    votes = [vote(at // 5, str(at + 1), Value.of_class(names[rng.integers(260)]), at, "huge") for at in range(1000)]
    votes += [vote(at // 5, str(at + 1), Value.of_class("AB"[at // 5 % 2]), at, "small") for at in range(100)]
    project.give(votes)
    assert project.run()["computed"]
    overview = project.statistics.overview(KEY)
    assert overview is not None and [each.name for each in overview.controls] == ["small"]
    said = " ".join(str(each) for each in overview.unmodelled)
    assert "'huge' has 1,000 annotators and 260 classes" in said and "memory" in said
