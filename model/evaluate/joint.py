"""Several controls of one data set, evaluated together: ours learns them in one network, the baselines one by one.

All controls are split by the same tasks, so that no task is tested for one control while another one's votes on it are
learned from. Where votes are visible, ours sees those of all controls, as a live project would; an annotator's own vote
on the control that is asked about never comes back to them. Cells are kept control by control, as for a single one.

Shape legend: N votes of one control, B units, A annotators, C classes, R draws.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from model.data.spaces import Value
from model.data.votes import Votes
from model.ensemble.ladder import Ladder, TrainingSet, fit
from model.errors import NotEnoughVotes
from model.evaluate.bootstrap import interval
from model.evaluate.cells import Cell, CellStore
from model.evaluate.contenders import OURS, Answers
from model.evaluate.design import fold_of_votes, kept, shown
from model.evaluate.harness import Job, Plan, Progress, cells_of, jobs, run
from model.evaluate.ours import Ours
from model.evaluate.problem import Problem, places
from model.evaluate.summary import Standings, row_of

Problems = Mapping[str, Problem]  # control -> its problem


def joined(problems: Problems, folds: int, seeds: int) -> dict[str, Problem]:
    """The same problems over their common tasks. Raises NotEnoughVotes where a fold would test no vote of one."""
    tasks = tuple(sorted({name for problem in problems.values() for name in problem.task_names}))
    found = {name: replace(problem, tasks=tasks) for name, problem in problems.items()}
    for name, problem in found.items():
        for seed in range(seeds):
            if len(np.unique(fold_of_votes(problem, folds, seed))) < folds:
                raise NotEnoughVotes(f"the control {name} has votes on too few tasks for {folds} folds")
    return found


def run_jointly(
    problems: Problems, plan: Plan, ours: Ours, stores: Mapping[str, CellStore], progress: Progress
) -> int:
    """Run what is missing; returns how many fits that were. `problems` come from `joined`.

    Ours is run where `plan.contenders` holds it. `progress` may raise to stop: whole cells stay.
    """
    alone = replace(plan, contenders=[each for each in plan.contenders if each is not ours])
    parts, fits = len(problems) + 1, 0
    for part, (name, problem) in enumerate(problems.items()):

        def tell(share: float, note: str, part: int = part, name: str = name) -> None:
            progress((part + share) / parts, f"{name}: {note}")

        fits += run(problem, alone, stores[name], tell)
    todo = [
        job for job in (jobs(replace(plan, contenders=[ours])) if ours in plan.contenders else ())
        if not all(store.has(key) for store in stores.values() for key in job.keys)
    ]
    for done, job in enumerate(todo):
        progress((parts - 1 + done / len(todo)) / parts, f"all controls: {job.title}")
        for name, cells in _joint_job(problems, job, plan, ours).items():
            for cell in cells:
                stores[name].save(cell)
    return fits + len(todo)


@dataclass(frozen=True, kw_only=True)
class _ReadyControl:
    """One control of a ladder that was fitted on several."""

    ladder: Ladder
    control: str
    problem: Problem
    models: tuple[str, ...]
    seen: Votes | None  # of all controls, on any test unit
    notes: Mapping[str, Any]

    def answer(self, units: Sequence[str], visible: Votes | None) -> Answers:
        tokens = self.problem.tokens(units)
        found = self.ladder.predict(
            tokens, self.problem.votes.annotators, units=units, given=self.seen,
            texts=self.problem.texts and self.problem.texts(units),
        )[self.control]
        ways = {"served": found.served, "network": found.network}
        return Answers(p=dict(zip(self.models, (ways[way] for way in OURS), strict=False)), consensus=found.consensus)


def _joint_job(problems: Problems, job: Job, plan: Plan, ours: Ours) -> dict[str, list[Cell]]:
    """Fit once on all controls, answer every setting for each."""
    test = {name: fold_of_votes(problem, plan.folds, job.seed) == job.fold for name, problem in problems.items()}
    training = together([
        problem.votes.select(kept(problem, ~test[name], job.drop, seed=job.seed, fold=job.fold))
        for name, problem in problems.items()
    ])
    spaces = {name: problem.space for name, problem in problems.items()}
    any_one = next(iter(problems.values()))
    began = time.perf_counter()
    result = fit(
        TrainingSet(votes=training, spaces=spaces, tokens=any_one.tokens, texts=any_one.texts,
                    heldout=lambda unit: False),
        replace(ours.config, seed=job.seed), device=plan.device,
    )
    seconds = round(time.perf_counter() - began, 3)
    found: dict[str, list[Cell]] = {name: [] for name in problems}
    for setting in job.settings:
        seen = {
            name: shown(problem, test[name], setting.visible, seed=job.seed, fold=job.fold)
            for name, problem in problems.items()
        }
        visible = together([problems[name].votes.select(rows) for name, rows in seen.items()])
        for name, problem in problems.items():
            figures = result.figures["controls"][name]
            notes = {"seconds": seconds, "weights": figures["weights"], "epochs": result.figures["epochs"]}
            ready = _ReadyControl(
                ladder=result.ladder, control=name, problem=problem, models=ours.models,
                seen=visible if setting.visible else None, notes=notes,
            )
            found[name] += cells_of(problem, job, setting, ready, test[name], seen[name], notes)
    return found


def together(parts: Sequence[Votes]) -> Votes:
    """The votes of all parts over common tables."""
    units = tuple(sorted({name for part in parts for name in part.units}))
    annotators = tuple(sorted({name for part in parts for name in part.annotators}))
    controls = tuple(sorted({name for part in parts for name in part.controls}))
    values = tuple(sorted({each for part in parts for each in part.values}, key=_in_order))
    position = {value: at for at, value in enumerate(values)}

    def column(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    def codes(name: str, tables: Sequence[Sequence[str]], table: Sequence[str]) -> Any:
        columns = [getattr(part, name) for part in parts]
        return np.concatenate([
            places(own, table).astype(np.int32)[code] for own, code in zip(tables, columns, strict=True)
        ])

    return Votes(
        units=units, annotators=annotators, controls=controls, values=values,
        unit=codes("unit", [part.units for part in parts], units),
        annotator=codes("annotator", [part.annotators for part in parts], annotators),
        control=codes("control", [part.controls for part in parts], controls),
        value=np.concatenate([
            np.array([position[each] for each in part.values], np.int32)[part.value] for part in parts
        ]),
        time=column("time"), weight=column("weight"), provenance=column("provenance"), scored=column("scored"),
    )


def _in_order(value: Value) -> tuple[str, str]:
    return value.kind, value.to_json()


def mean_json(tables: Mapping[str, Standings], ours: str) -> dict[str, Any]:
    """The mean of the controls, each counting the same, in the shape of `summary.to_json`.

    Figures are averaged draw by draw before intervals are taken, so that these know that the controls share their
    tasks. Only what every control has is there. Seconds are of the fits of all controls together.
    """
    first = next(iter(tables.values()))
    results, differences = list[dict[str, Any]](), list[dict[str, Any]]()
    notes: list[dict[str, Any]] = []
    for setting in [name for name in first.settings if all(name in table.settings for table in tables.values())]:
        models = [m for m in first.models(setting) if all(m in table.models(setting) for table in tables.values())]
        for model in models:
            figures = [table.figures(model, setting, table.seeds(model, setting)) for table in tables.values()]
            shared = [metric for metric in figures[0] if all(metric in each for each in figures)]
            results += [
                {"model": model, "setting": setting, "metric": metric,
                 **row_of(interval(np.mean([each[metric] for each in figures], axis=0)))} for metric in shared
            ]
            seconds = [table.standing(model, setting).seconds for table in tables.values()]
            notes.append({
                "model": model, "setting": setting, "seeds": list(first.seeds(model, setting)), "weights": {},
                "seconds_a_fit": max(seconds) if model.partition("@")[0] in OURS else sum(seconds),
            })
            gaps = {metric: [table.difference(ours, model, setting, metric) for table in tables.values()]
                    for metric in (shared if model != ours else ())}
            differences += [
                {"model": ours, "against": model, "setting": setting, "metric": metric,
                 **row_of(interval(np.mean([each for each in values if each is not None], axis=0)))}
                for metric, values in gaps.items() if all(each is not None for each in values)
            ]
    problems = [table.problem for table in tables.values()]
    return {
        "dataset": f"{first.problem.name}: mean of {len(tables)} controls", "settings": first.settings,
        "folds": first.folds, "votes": sum(len(problem.votes) for problem in problems),
        "tasks": len(first.problem.task_names),
        "annotators": len({name for problem in problems for name in problem.votes.annotators}),
        "classes": list(dict.fromkeys(name for problem in problems for name in problem.space.classes)),
        "results": results, "differences": differences, "notes": notes,
    }
