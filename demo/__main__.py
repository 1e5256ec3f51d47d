"""`python -m demo`: Label Studio and Polyvox with a sample project and simulated annotators, on this machine only.

`python -m demo truth` measures instead how right the demo's predictions are; it starts no server.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import requests
from rich.console import Console

from demo.processes import DemoError, free_port
from demo.show import Show
from demo.state import FILE, State, load

LABEL_STUDIO_PORT = 8080
POLYVOX_PORT = 9090


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo until Ctrl-C, or measure it; returns the exit status."""
    asked = sys.argv[1:] if argv is None else list(argv)
    if asked[:1] == ["truth"]:
        from demo import truth  # imports numpy, which nothing else here needs

        return truth.main(asked[1:])
    arguments = _parser().parse_args(asked)
    console = Console()
    folder = Path(os.environ.get("POLYVOX_DATA_DIR") or "data").absolute() / "demo"
    try:
        with _only_one(folder):
            if arguments.fresh:
                _start_over(folder)
            state = load(folder)
            _choose_ports(state, arguments, console)
            with Show(state, console, control_arm_percent=arguments.control_arm_percent) as show:
                show.begin()
                if not arguments.check:
                    console.print("Press Ctrl-C to stop everything.")
                    show.wait()
        return 0
    except DemoError as error:
        console.print(str(error), style="red", soft_wrap=True, highlight=False, markup=False)
        return 1
    except requests.RequestException as error:
        message = f"A server did not answer as expected: {error}"
        console.print(message, style="red", soft_wrap=True, highlight=False, markup=False)
        console.print(f"The logs are in {folder}; `python -m demo --fresh` starts over.", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("Everything is stopped. The next run goes on with the same data.")
        return 0 if not arguments.check else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=(__doc__ or "").replace("`", ""))
    parser.add_argument("--port", type=int, help=f"port of Label Studio (default: {LABEL_STUDIO_PORT}, or a free one)")
    parser.add_argument("--polyvox-port", type=int, help=f"port of Polyvox (default: {POLYVOX_PORT}, or a free one)")
    parser.add_argument("--control-arm-percent", type=float, default=10.0, metavar="PERCENT",
                        help="share of the task-annotator pairs that see no suggestion (default: %(default)g)")
    parser.add_argument("--fresh", action="store_true", help="delete the demo's data first and begin anew")
    parser.add_argument("--check", action="store_true", help="stop everything as soon as it is up (for tests)")
    return parser


def _choose_ports(state: State, arguments: argparse.Namespace, console: Console) -> None:
    """Ports asked for must be free; others fall back to free ones, preferring those of the last run."""
    state.label_studio_port = _port(
        "Label Studio", "--port", arguments.port, state.label_studio_port or LABEL_STUDIO_PORT, console
    )
    state.polyvox_port = _port(
        "Polyvox", "--polyvox-port", arguments.polyvox_port, state.polyvox_port or POLYVOX_PORT, console
    )
    state.save()


def _port(name: str, option: str, wanted: int | None, usual: int, console: Console) -> int:
    port = free_port(wanted or usual)
    if wanted and port != wanted:
        raise DemoError(f"Port {wanted} is taken. Stop what listens there, or choose another: {option} {port}")
    if port != usual and not wanted:
        console.print(f"Port {usual} is taken; {name} listens on {port} instead.")
    return port


def _start_over(folder: Path) -> None:
    """Delete what earlier runs left. The folder must look like the demo's, whatever POLYVOX_DATA_DIR says."""
    if folder.exists() and not (folder / FILE).exists() and any(child.name != "lock" for child in folder.iterdir()):
        raise DemoError(f"{folder} was not made by this demo (it has no {FILE}), so it is not deleted.")
    for child in folder.iterdir() if folder.exists() else ():
        if child.is_dir():
            shutil.rmtree(child)
        elif child.name != "lock":
            child.unlink()


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Refuse to run twice over the same data."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DemoError(
                f"A demo is already running over {folder}. Stop it, or set POLYVOX_DATA_DIR to another folder."
            ) from error
        yield


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    for stop in (signal.SIGINT, signal.SIGTERM):  # a shell may have told us to ignore the first
        signal.signal(stop, _interrupt)
    sys.exit(main())
