"""The commands of `python -m backend`, one module each. To add one: write a module with a `COMMAND`, list it here."""

from backend.commands import deliver, predict, serve, status, train, worker
from backend.commands.base import Command

COMMANDS: tuple[Command, ...] = (
    serve.COMMAND, worker.COMMAND, status.COMMAND, train.COMMAND, deliver.COMMAND, predict.COMMAND,
)

__all__ = ["COMMANDS", "Command"]
