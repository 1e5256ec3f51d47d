"""`simulate`: a data set of simulated annotators with known truth; the options are those of peerannot."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from backend.commands.base import Arguments, Command, say
from backend.commands.dataset import working
from backend.errors import ClientError
from backend.formats import WHAT, Dataset, WriteOptions, save_dataset
from backend.formats.dataset import DEFAULT_CONTROL
from backend.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from model.crowd.simulate import Crowd, SimulatedCrowd

STRATEGIES = {
    "hammer-spammer": "--ratio spammers guess, the others are always right",
    "independent-confusion": "everybody has a confusion matrix of their own",
    "student-teacher": "--ratio students err as their teacher does",
    "discrete-difficulty": "easy tasks are answered right, hard ones by confusion; --ratio annotators are good",
    "drift": "--ratio annotators begin to guess along the way",
    "clusters": "--n-clusters groups that share a confusion matrix",
    "content": "everybody reads the content in their own way",
    "faults": "the last four are a spammer, a constant answerer, an inverter and a drifter",
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-s", "--strategy", metavar="STRATEGY", choices=tuple(STRATEGIES), default="hammer-spammer",
        help="; ".join(f"{name}: {what}" for name, what in STRATEGIES.items()))
    add("--n-worker", "--n-annotators", metavar="N", type=int, default=30, dest="n_annotators",
        help="number of annotators")
    add("--n-task", "--n-tasks", metavar="N", type=int, default=200, dest="n_tasks", help="number of tasks")
    add("-K", "--n-classes", metavar="N", type=int, default=5, help="number of classes")
    add("-r", "--ratio", metavar="SHARE", type=float, default=0.1,
        help="share of spammers, students, good annotators or drifters, by strategy")
    add("--ratio-diff", metavar="X", type=float, default=1.0, help="discrete-difficulty: easy tasks for each hard one")
    add("--random", metavar="SHARE", type=float, default=0.0,
        help="discrete-difficulty: share of tasks that nobody can tell")
    add("--n-clusters", metavar="N", type=int, default=3, help="clusters: number of groups")
    add("--class-shares", metavar="X,X,...", help="how frequent each class is; default: all alike")
    add("--matrix-file", metavar="FILE", type=Path,
        help="NumPy file with confusion matrices (annotators, true class, given class) to use instead of drawn ones")
    add("-fb", "--feedback", metavar="N", type=int, help="votes a task at most; default: everybody votes")
    add("-wl", "--workerload", metavar="N", type=int, dest="workload", help="votes an annotator at most")
    add("--imbalance-votes", action="store_true", help="draw the number of votes of each task between 1 and the bound")
    add("--skew", metavar="X", type=float, default=0.0,
        help="uneven activity: the n-th annotator is taken in proportion to 1 / n^X")
    add("--missing", metavar="SHARE", type=float, default=0.0, help="share of the votes that get lost")
    add("--seed", metavar="N", type=int, default=0, help="equal seeds give equal data")
    add("--folder", "--out", metavar="FOLDER", type=Path, default=Path("simulation"), dest="out",
        help="where to write the data set")
    add("--to", metavar="FORMAT", choices=tuple(WHAT), default="peerannot", help=f"{', '.join(WHAT)}")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    import numpy as np

    from model.crowd.simulate import simulate

    if arguments.seed < 0:
        raise ClientError("--seed must not be negative.")
    with working(f"simulating {arguments.strategy}"):
        crowd = _crowd(arguments)
        made = simulate(arguments.strategy, crowd, np.random.default_rng(arguments.seed))
    classes = tuple(str(each) for each in range(made.n_classes))
    truth = {str(unit): str(label) for unit, label in enumerate(made.truth.tolist())}
    dataset = Dataset(
        votes=made.votes, name=arguments.strategy, gold={DEFAULT_CONTROL: truth}, classes={DEFAULT_CONTROL: classes})
    if arguments.to == "peerannot":
        from backend.formats.peerannot import write_with

        write_with(dataset, arguments.out, WriteOptions(), _facts(arguments, made), _arrays(made))
    else:
        save_dataset(dataset, arguments.out, arguments.to)
    votes = made.votes
    say(console, f"strategy={arguments.strategy} tasks={len(votes.units)} annotators={len(votes.annotators)} "
        f"votes={len(votes)} seed={arguments.seed} out={arguments.out}")
    return 0


def _crowd(arguments: Arguments) -> Crowd:
    import numpy as np

    from model.crowd.assign import Assignment
    from model.crowd.simulate import Crowd

    matrices = None
    if arguments.matrix_file is not None:
        try:
            matrices = np.load(arguments.matrix_file, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ClientError(f"{arguments.matrix_file.name} is not a NumPy array.") from error
    shares = None
    if arguments.class_shares is not None:
        try:
            shares = tuple(float(each) for each in arguments.class_shares.split(","))
        except ValueError as error:
            raise ClientError("--class-shares takes numbers with commas between them.") from error
    return Crowd(
        n_annotators=arguments.n_annotators, n_tasks=arguments.n_tasks, n_classes=arguments.n_classes,
        ratio=arguments.ratio, ratio_diff=arguments.ratio_diff, random=arguments.random,
        n_clusters=arguments.n_clusters, class_shares=shares, matrices=matrices,
        assignment=Assignment(
            feedback=arguments.feedback, workload=arguments.workload, imbalance_votes=arguments.imbalance_votes,
            skew=arguments.skew, missing=arguments.missing,
        ),
    )


def _facts(arguments: Arguments, made: SimulatedCrowd) -> Mapping[str, Any]:
    """What stands in metadata.json beside the sizes: how it was made, and what each annotator is."""
    facts: dict[str, Any] = {
        "strategy": arguments.strategy, "ratio": arguments.ratio, "ratio_diff": arguments.ratio_diff,
        "random": arguments.random, "feedback": arguments.feedback, "workerload": arguments.workload,
        "imbalance_votes": arguments.imbalance_votes, "skew": arguments.skew, "missing": arguments.missing,
        "seed": arguments.seed, "roles": list(made.roles),
    }
    if made.change is not None:
        facts["change_after"] = made.change.tolist()
    return facts


def _arrays(made: SimulatedCrowd) -> Mapping[str, NDArray[Any]]:
    import numpy as np

    arrays: dict[str, np.ndarray[Any, Any]] = {}
    if made.confusion is not None:
        arrays["matrices"] = made.confusion
    if made.difficulty:
        arrays["difficulties"] = np.array(made.difficulty)
    if made.groups is not None and "student" in made.roles:
        students = np.flatnonzero(np.array(made.roles) == "student")
        arrays["student_teacher_association"] = np.stack([students, made.groups[students]], axis=1)
    return arrays


COMMAND = Command(
    name="simulate", help="a data set of simulated annotators with known truth", arguments=_arguments, run=_run,
    description="Simulate a crowd of annotators and write its votes with the true labels. Options and files are those "
    "of peerannot's simulate.",
)
