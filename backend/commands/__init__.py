"""The commands of `python -m backend`, one module each. To add one: write a module with a `COMMAND`, list it here."""

from backend.commands import (
    adopt,
    aggregate,
    aggregate_deep,
    agreement,
    annotate,
    annotator_token,
    backup,
    convert,
    deliver,
    evaluate,
    explain,
    export_blind,
    fill,
    gaps,
    identify,
    overrides,
    predict,
    report,
    restore,
    serve,
    simulate,
    status,
    train,
    worker,
)
from backend.commands.base import Command

COMMANDS: tuple[Command, ...] = (
    serve.COMMAND, worker.COMMAND, status.COMMAND, train.COMMAND, deliver.COMMAND, predict.COMMAND,
    explain.COMMAND, annotator_token.COMMAND, overrides.COMMAND, report.COMMAND, export_blind.COMMAND,
    aggregate.COMMAND, aggregate_deep.COMMAND, identify.COMMAND, agreement.COMMAND, simulate.COMMAND,
    convert.COMMAND, evaluate.COMMAND, gaps.COMMAND, fill.COMMAND,
    annotate.COMMAND, backup.COMMAND, restore.COMMAND, adopt.COMMAND,
)

__all__ = ["COMMANDS", "Command"]
