"""`evaluate`: how well every model predicts each annotator of a data set, by cross-validation over tasks.

The predictions of every fold are kept as cells, so that a run which was stopped goes on, and one with more models,
seeds or settings only adds to it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rich.console import Console

from backend import ports
from backend.commands.base import Arguments, Command, say
from backend.commands.dataset import check_output, dataset_arguments, load, sentences, write_json
from backend.commands.evaluation_content import tokens_for
from backend.commands.progress import progress_bar
from backend.errors import ClientError
from backend.settings import Settings

if TYPE_CHECKING:
    from model.evaluate.design import Setting
    from model.evaluate.harness import Plan
    from model.evaluate.ours import Ours
    from model.evaluate.problem import Problem

_SHOWN = ("accuracy", "accuracy_annotators", "macro_f1", "log_loss", "ece", "copr")


def _arguments(parser: argparse.ArgumentParser) -> None:
    dataset_arguments(parser)
    add = parser.add_argument
    add("--controls", metavar="NAME", nargs="*", help="several controls, or without names all of them: ours learns "
        "them together in one network, baselines one by one")
    add("--text", metavar="FIELD", default="", help="the field of the task data that is read; a data set without text "
        "is evaluated without content")
    add("--image", metavar="FIELD", default="", help="the field of the task data that names a picture below the folder "
        "of the data set; default: image, img, picture or photo, where every task has it")
    add("--folds", metavar="N", type=int, default=5, help="folds of the tasks; each is tested once")
    add("--seeds", metavar="N", type=int, default=1, help="repetitions with other splits")
    add("--models", metavar="MODEL", nargs="+", default=[], help="which models; served and network are ours; default: "
        "all")
    add("--visible", metavar="SHARE", type=float, nargs="*", default=[0.5],
        help="predict the rest of a test task's votes when this share of them is seen (beside: when none is)")
    add("--drop", metavar="SHARE", type=float, nargs="*", default=[], help="remove this share of the training votes")
    add("--preset", metavar="NAME", choices=("polyvox", "paper"), default="polyvox", help="ours: polyvox or paper")
    add("--device", metavar="DEVICE", help="cpu, cuda or cuda:N; default: the setting POLYVOX_DEVICE")
    add("--encoder", metavar="NAME", help="the encoder of texts or pictures; default: the setting POLYVOX_ENCODER "
        "or POLYVOX_IMAGE_ENCODER")
    add("--cells", metavar="FOLDER", type=Path, help="where the predictions of each fold are kept, to go on with; "
        "default: beside --out, else evaluation-cells")
    add("--by-annotator", action="store_true", help="also write accuracy and log-loss of every single annotator")
    add("--out", metavar="FILE", type=Path, help="write the results (.json), and beside them the same as Markdown and "
        "as a plot (.md, .png)")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    from backend.formats.problems import problem_of
    from model.config import LadderConfig
    from model.evaluate.baselines import BASELINES
    from model.evaluate.contenders import contenders
    from model.evaluate.harness import Plan
    from model.evaluate.ours import Ours

    check_output(arguments.out, (".json",))
    if arguments.folds < 2 or arguments.seeds < 1:
        raise ClientError("An evaluation needs at least two folds and one seed.")
    cells = arguments.cells or (
        arguments.out.with_name(f"{arguments.out.stem}-cells") if arguments.out else Path("evaluation-cells"))
    with sentences():
        label = "" if arguments.preset == "polyvox" else arguments.preset
        ours = Ours(config=LadderConfig.preset(arguments.preset), label=label)
        plan = Plan(
            contenders=contenders(arguments.models or [*ours.models, *BASELINES], ours),
            settings=_settings(arguments.visible, arguments.drop), folds=arguments.folds, seeds=arguments.seeds,
            device=_device(arguments.device, settings),
        )
        dataset = load(arguments)
        names = [dataset.control(name) for name in arguments.controls or dataset.votes.controls] \
            if arguments.controls is not None else [dataset.control(arguments.control)]
        with progress_bar("evaluating") as progress:
            tokens, texts = tokens_for(dataset, arguments, settings, cells / "tokens", plan.device, progress)
            problems = {name: problem_of(dataset, name, tokens, ordered=dataset.ordinal, texts=texts) for name in names}
            ran, parts = _evaluated(problems, plan, ours, cells, arguments.by_annotator, progress)
    for name, results in parts.items():
        for setting in results["settings"]:
            _show(results, setting, f"{name}: {setting}" if len(parts) > 1 else setting, console)
    if arguments.out is not None:
        _write(arguments.out, parts)
        say(console, f"written: {arguments.out}")
    for name, results in parts.items():
        weights: dict[str, float] = next((note["weights"] for note in results["notes"] if note["weights"]), {})
        if weights:
            said = ", ".join(f"{base} {weight:.2f}" for base, weight in weights.items())
            say(console, f"base models in what is served{f' of {name}' if len(parts) > 1 else ''}: {said}")
    total = next(iter(parts.values()))
    say(console, f"tasks={total['tasks']} annotators={total['annotators']} votes={total['votes']} fits={ran}")
    return 0


def _evaluated(
    problems: Mapping[str, Problem], plan: Plan, ours: Ours, cells: Path, by_annotator: bool, progress: ports.Progress
) -> tuple[int, dict[str, dict[str, Any]]]:
    """How many fits were run, and the results of each control; of several, their mean comes first."""
    from model.evaluate.cells import CellStore
    from model.evaluate.harness import run
    from model.evaluate.joint import joined, mean_json, run_jointly
    from model.evaluate.summary import standings, to_json

    several, first = len(problems) > 1, ours.models[0]
    if several:
        problems = joined(problems, plan.folds, plan.seeds)
    folders = {name: cells / quote(name, safe=" ").replace(".", "%2E") if several else cells for name in problems}
    stores = {
        name: CellStore(folders[name], fingerprint=problem.fingerprint, folds=plan.folds)
        for name, problem in problems.items()
    }
    if several:
        ran = run_jointly(problems, plan, ours, stores, progress)
    else:
        ran = sum(run(problem, plan, stores[name], progress) for name, problem in problems.items())
    progress(1.0, "drawing intervals")
    found = {name: standings(problem, stores[name], plan.folds) for name, problem in problems.items()}
    parts = {name: to_json(each, first, by_annotator=by_annotator) for name, each in found.items()}
    return ran, {f"mean of {len(found)} controls": mean_json(found, first), **parts} if several else parts


def _settings(visible: Sequence[float], drop: Sequence[float]) -> list[Setting]:
    from model.evaluate.design import Setting

    chosen = [Setting(), *(Setting(visible=share) for share in visible), *(Setting(drop=share) for share in drop)]
    return list(dict.fromkeys(chosen))


def _device(name: str | None, settings: Settings) -> str:
    """Where networks run. Raises ClientError for a device that is not there."""
    import torch

    from backend.bootstrap import device_of

    try:
        chosen = torch.device(name or device_of(settings))
        torch.zeros(1, device=chosen)
    except (RuntimeError, AssertionError) as error:  # an unknown name; no such card
        raise ClientError(f"The device {name} cannot be used here.") from error
    return str(chosen)


def _show(results: dict[str, Any], setting: str, title: str, console: Console) -> None:
    """A short table: what matters most, best accuracy first."""
    from rich.table import Table

    from model.evaluate.report import cell, figures_of

    figures = figures_of(results, setting)
    say(console, title, "bold")
    table = Table("model", *(name.replace("_", " ") for name in _SHOWN), box=None, padding=(0, 1))
    for model in sorted(figures, key=lambda name: -figures[name]["accuracy"]["mean"]):
        row = figures[model]
        table.add_row(model, *(cell(row.get(name), interval=name in ("accuracy", "log_loss")) for name in _SHOWN))
    console.print(table)
    console.print()


def _write(path: Path, parts: Mapping[str, dict[str, Any]]) -> None:
    """Results as they are for one control; for several flat, with a key control (null: their mean)."""
    from backend.commands.evaluation_plots import plot_results
    from backend.formats.atomic import whole_file
    from model.evaluate.report import flat, markdown

    first, *others = parts.values()
    write_json(path, flat(first, list(parts.items())[1:]) if others else first)
    with whole_file(path.with_suffix(".md")) as aside:
        pages = [markdown({**each, "dataset": f"{each['dataset']}: {name}"}, level=2) for name, each
                 in list(parts.items())[1:]]
        aside.write_text("\n".join([markdown(first), *pages]), encoding="utf-8")
    plot_results(first, path.with_suffix(".png"))


COMMAND = Command(
    name="evaluate", help="how well every model predicts each annotator of a data set", arguments=_arguments, run=_run,
    description="Cross-validate every model on a data set, by task: ours (served, and the network alone) and all "
    "baselines, on new tasks, on tasks of which some votes are seen, and with training votes removed. Intervals are "
    "95 percent, by a bootstrap over tasks; differences to ours are paired. See docs/evaluation.md.",
)
