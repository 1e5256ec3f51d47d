"""`python -m demo truth`: how right the demo is, where nobody has labelled anything.

What the simulated annotators would say of every message is known. So they label their part as in the demo, Polyvox
reads, trains and answers as in the demo (the same services in this process; neither Label Studio nor a server), and its
answers are compared with the labels that nobody gave: the *untouched* cells of the matrix of messages and annotators.
The bar is each annotator's commonest label, told by an oracle: the share of it among the very cells that are measured.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from demo.client import Account
from demo.personas import PERSONAS, SLIPS
from demo.sample import CONTROL, LABEL_CONFIG, TITLE, Message, load
from demo.showcase import SURE, Difference, Showcase, showcases, truth_of
from demo.stage import LABELLED_EACH, SEED, tasks_with_annotations
from demo.watch import label_of
from labelstudio.choice import CONSENSUS, own_name

if TYPE_CHECKING:
    from backend.bootstrap import Services
    from model.data.metrics import Interval

BARS = (0.75, 0.15)  # what the demo promises of everybody: accuracy, and points above the commonest label
_WHEN = "2026-01-01T00:00:00Z"
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One annotator on the messages that they have not labelled."""

    email: str
    cells: int
    accuracy: Interval
    commonest: float  # share of their commonest label among these cells
    gain: Interval  # accuracy minus that share, paired
    sure: int  # cells with a confidence of `SURE` or more
    right_when_sure: int

    @property
    def holds(self) -> bool:
        """Whether what the demo promises is true of this annotator."""
        return self.accuracy.mean >= BARS[0] and self.gain.mean >= BARS[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything that was measured with one seed."""

    seed: int
    version: str
    verdict: str  # of the gate
    rows: tuple[Row, ...]
    showcases: tuple[Showcase, ...]
    named: tuple[tuple[str, str], ...]  # annotators whom the audit names, with the fault
    differing: Mapping[str, int]  # why two votes on a message differ (true cause) -> pairs of votes
    causes: Mapping[str, int]  # what Polyvox says why votes on a message differ -> messages

    @property
    def holds(self) -> bool:
        """Whether all that the demo promises is true."""
        return all(row.holds for row in self.rows) and len(self.showcases) == 3 and not self.named


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit status is 1 where a promise of the demo does not hold."""
    parser = argparse.ArgumentParser(prog="python -m demo truth", description=(__doc__ or "").replace("`", ""))
    parser.add_argument("--seeds", type=int, default=1, metavar="N",
                        help="also with other labels and other gaps: N runs in all (default: 1, the demo's own)")
    asked = parser.parse_args(arguments)
    if asked.seeds < 1:
        parser.error("--seeds wants 1 or more")
    console, held = Console(), True
    with tempfile.TemporaryDirectory(prefix="polyvox-demo-truth-") as folder:
        services = services_over(Path(folder))
        try:
            for run in range(asked.seeds):
                found = measure(services, number=run + 1, seed=SEED + run)
                tell(found, console)
                held = held and found.holds
        finally:
            services.close()
    return 0 if held else 1


def services_over(folder: Path) -> Services:
    """Polyvox' services as the demo has them, over an empty folder and without a Label Studio. The caller closes them.
    """
    import torch

    from backend.bootstrap import build_services
    from backend.settings import Settings

    settings = Settings(data_dir=folder, control_arm_percent=0.0)
    torch.set_num_threads(settings.train_threads)  # as a job process does
    return build_services(settings)


def measure(services: Services, *, number: int, seed: int) -> Found:
    """Stand the demo up as project `number`, train, and compare. Raises JobFailed where nothing can be learned."""
    messages, key = load(), f"{number}.1700000000"
    accounts = [
        Account(id=at, email=persona.email, password="", token="", personal_token="")
        for at, persona in enumerate(PERSONAS, 2)
    ]
    tasks = [_stored(at, task) for at, task in enumerate(tasks_with_annotations(messages, accounts, seed=seed), 1)]
    _fill(services, key, number, tasks, accounts)
    outcome = services.training.run(key, _quietly)
    services.statistics.run(key, _quietly)
    answers = _answers(services, key, tasks, accounts)
    truth = truth_of(messages, seed)
    document = services.statistics.annotators(key)
    assert document is not None, "statistics were computed just now"
    untouched = [answer for answer, task in zip(answers, tasks, strict=True) if not task["annotations"]]
    return Found(
        seed=seed, version=outcome["version"], verdict=outcome["reason"],
        rows=tuple(_row(account.email, answers, truth) for account in accounts),
        showcases=tuple(showcases(untouched, truth)),
        named=tuple((row.name, figures.fault) for row in document.rows for figures in row.controls.values()
                    if figures.fault),
        differing=_causes(messages, tasks, accounts, seed), causes=_said(services, key),
    )


def _stored(number: int, task: Mapping[str, Any]) -> dict[str, Any]:
    """A task that is to be imported, as Label Studio gives it back afterwards."""
    kept = {"was_cancelled": False, "created_at": _WHEN, "updated_at": _WHEN, "import_id": number}
    annotations = [{**each, "id": 100 * number + each["completed_by"], **kept} for each in task["annotations"]]
    return {"id": number, "data": task["data"], "annotations": annotations, "created_at": _WHEN, "updated_at": _WHEN}


def _fill(
    services: Services, key: str, number: int, tasks: Sequence[Mapping[str, Any]], accounts: Sequence[Account]
) -> None:
    """Put the project into the store, as reading it from Label Studio does."""
    from backend.labeling import parse_config, read_task

    config = parse_config(LABEL_CONFIG)
    services.store.projects.ensure(key, title=TITLE, label_config=LABEL_CONFIG)
    services.store.tasks.take_over(key, [
        read_task(config, task, project_id=number, control_arm_percent=0.0, shown_since=None, known_annotators={})
        for task in tasks
    ])
    services.store.votes.set_names(key, {str(account.id): account.email for account in accounts})


def _answers(
    services: Services, key: str, tasks: Sequence[Mapping[str, Any]], accounts: Sequence[Account]
) -> list[Difference]:
    """What Label Studio would be sent for each task, in order: labels of those who have not labelled it."""
    email_of = {own_name(str(account.id)): account.email for account in accounts}
    services.features.texts([task["data"]["text"] for task in tasks])
    sent = services.prediction.answer(key, LABEL_CONFIG, tasks, deadline_s=_PATIENCE_S)
    answers = []
    for task, predictions in zip(tasks, sent, strict=True):
        named = {str(each["model_version"]).partition("@")[0]: each for each in predictions}
        labels = {
            email_of[name]: (label_of(each), float(each["score"])) for name, each in named.items() if name in email_of
        }
        consensus = label_of(named[CONSENSUS]) if CONSENSUS in named else ""
        answers.append(Difference(task=task["id"], text=task["data"]["text"], labels=labels, consensus=consensus))
    return answers


def _row(email: str, answers: Sequence[Difference], truth: Mapping[str, Mapping[str, str]]) -> Row:
    from model.data.metrics import paired_interval

    cells = [(answer.task, *answer.labels[email], truth[answer.text][email])
             for answer in answers if email in answer.labels]
    task = np.array([cell[0] for cell in cells])
    right = np.array([label == true for _, label, _, true in cells], dtype=np.float64)
    sure = np.array([probability >= SURE for _, _, probability, _ in cells])
    commonest = Counter(true for *_, true in cells).most_common(1)[0][0]
    usual = np.array([true == commonest for *_, true in cells], dtype=np.float64)
    return Row(
        email=email, cells=len(cells), accuracy=paired_interval(right, task), commonest=float(usual.mean()),
        gain=paired_interval(right - usual, task), sure=int(sure.sum()), right_when_sure=int(right[sure].sum()),
    )


def _causes(
    messages: Sequence[Message], tasks: Sequence[Mapping[str, Any]], accounts: Sequence[Account], seed: int
) -> dict[str, int]:
    """True causes of differing votes: both kept to their rules, or somebody departed from theirs."""
    persona_of = {account.id: persona for account, persona in zip(accounts, PERSONAS, strict=True)}
    found = {"two rules": 0, "a slip": 0}
    for message, task in zip(messages, tasks, strict=True):
        given = [persona_of[each["completed_by"]] for each in task["annotations"]]
        for one, other in combinations(given, 2):
            if one.label(message, seed) != other.label(message, seed):
                slip = one.slipped(message, seed) or other.slipped(message, seed)
                found["a slip" if slip else "two rules"] += 1
    return found


def _said(services: Services, key: str) -> dict[str, int]:
    """Polyvox' causes of messages with differing votes."""
    document = services.statistics.tasks(key)
    assert document is not None, "statistics were computed just now"
    lists = document.controls[CONTROL]
    told = {cause: count for cause, count in lists.causes.items() if cause not in ("agreed", "cannot-tell")}
    return {**told, "cannot-tell": lists.split - sum(told.values())}


def _quietly(done: float, note: str) -> None:
    """Progress that nobody waits for."""


def tell(found: Found, console: Console) -> None:
    """Print what was found."""
    console.print(
        f"\n[bold]Seed {found.seed}[/bold]: {found.version} learned from {LABELLED_EACH} votes of each annotator. "
        f"{found.verdict}", soft_wrap=True, highlight=False)
    table = Table("who", "untouched", "right", "commonest", "points above", "right, of sure", "holds", box=None)
    for row in found.rows:
        table.add_row(
            _short(row.email), str(row.cells), _percent(row.accuracy), f"{row.commonest:.0%}", _points(row.gain),
            f"{row.right_when_sure} of {row.sure}", "yes" if row.holds else "NO",
        )
    console.print(table)
    say = f"{BARS[0]:.0%} right and {BARS[1] * 100:.0f} points above the commonest label"
    console.print(f"Untouched: messages that they have not labelled; commonest: share of their commonest label among "
                  f"these; sure: with a confidence of {SURE:.0%} or more; in brackets: 95 % intervals. Promised of "
                  f"each: {say}. Simulated annotators depart from their "
                  f"own rule on {SLIPS:.0%} of the messages.", soft_wrap=True, highlight=False)
    console.print(f"Showcases, on messages that nobody has labelled ({len(found.showcases)} of 3):", highlight=False)
    for case in found.showcases:
        console.print(f'  "{case.difference.text}"', markup=False, soft_wrap=True, highlight=False)
        for email in case.people:
            label, probability = case.difference.labels[email]
            console.print(f"    {email:<31} {label} ({probability:.0%} sure), and says so", highlight=False)
    named = ", ".join(f"{name} ({fault})" for name, fault in found.named) or "nobody"
    console.print(f"Named by the audit: {named}. Nobody has a fault.", highlight=False)
    pairs = ", ".join(f"{count} by {cause}" for cause, count in found.differing.items())
    console.print(f"Pairs of votes that differ: {sum(found.differing.values())} (truly {pairs}).", highlight=False)
    said = ", ".join(f"{count} {cause}" for cause, count in found.causes.items())
    console.print(f"Messages with differing votes: {sum(found.causes.values())} (Polyvox says {said}; with two or "
                  "three votes on a message much cannot be told).", soft_wrap=True, highlight=False)


def _short(email: str) -> str:
    """"ada" of "simulated.ada@example.com"."""
    return email.partition("@")[0].rpartition(".")[2]


def _percent(interval: Interval) -> str:
    return f"{interval.mean:.0%} [{interval.low * 100:.0f}, {min(interval.high, 1.0) * 100:.0f}]"


def _points(interval: Interval) -> str:
    return f"{interval.mean * 100:+.0f} [{interval.low * 100:.0f}, {interval.high * 100:.0f}]"
