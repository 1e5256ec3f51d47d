"""The course of the demo: start both servers, set the stage, wait for the first version, tell what to look at."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from demo import stage, watch
from demo.client import Client
from demo.greeting import Greeter, profile_of
from demo.label_studio import FIRST_START_TIMEOUT_S, REPOSITORY, label_studio, url
from demo.personas import PERSONAS
from demo.processes import LOOPBACK, DemoError, Service, clean_env
from demo.sample import load
from demo.showcase import SURE, showcases, truth_of
from demo.state import OWNER_EMAIL, POLYVOX_USER, State

DELIVERY_TIMEOUT_S = 900.0
GREET_EVERY_S = 10.0


class Show:
    """Both servers of the demo, as a context manager; leaving it stops them, whatever happened."""

    def __init__(self, state: State, console: Console, *, control_arm_percent: float) -> None:
        self._state = state
        self._console = console
        self._percent = control_arm_percent
        self._url = url(state.label_studio_port)
        self._polyvox_url = url(state.polyvox_port)
        self._label_studio = label_studio(
            data=state.folder / "label-studio", port=state.label_studio_port, owner=state.owner,
            log=state.folder / "label-studio.log",
            extra_env={"POLYVOX_CONTROL_ARM_PERCENT": str(control_arm_percent)},
        )
        self._polyvox = polyvox(state, control_arm_percent=control_arm_percent)
        self._client = Client(self._url, state.owner_token)

    def begin(self) -> None:
        """Everything up to the point where somebody can log in and look."""
        started = time.monotonic()
        self._console.print(
            "This demo listens on this machine only. Label Studio's protection against requests to private addresses "
            "(ML_BLOCK_LOCAL_IP, SSRF_PROTECTION_ENABLED) is switched off [bold]for this demo only[/bold], because "
            "Polyvox runs at 127.0.0.1; keep both on wherever others can reach the server.", soft_wrap=True,
        )
        self._start_servers()
        with self._step("Signing up simulated annotators"):
            stage.accounts(self._client, self._state)
        with self._step("Making the project and importing messages") as done:
            annotations = stage.project(self._client, self._state)
            done(f"{annotations} simulated annotations came in with them" if annotations else "there already")
        with self._step("Connecting Polyvox"):
            stage.connect(self._client, self._state, self._polyvox_url)
        with self._step("Learning the annotators") as done:
            status = watch.wait_for_delivery(
                self._polyvox, self._polyvox_url, self._state.project, timeout_s=DELIVERY_TIMEOUT_S, tell=done,
                login=self._state.polyvox_login,
            )
            done(f"version {status['model_version']}, learned from {status['votes']} votes, is in Label Studio", 1.0)
        self._console.print(f"Ready after {time.monotonic() - started:.0f} s.\n")
        self._tell_what_to_look_at()

    def wait(self) -> None:
        """Until somebody presses Ctrl-C; meanwhile, tell the owner what was learned of them. Raises DemoError when a
        server stops by itself."""
        state, asked = self._state, time.monotonic()
        me = int(self._client.call("GET", "/api/current-user/whoami")["id"])
        greeter = Greeter(partial(profile_of, self._polyvox_url, state.project, me, state.polyvox_login))
        while True:
            if time.monotonic() - asked >= GREET_EVERY_S:
                if said := greeter.news():
                    self._console.print(said, soft_wrap=True, highlight=False, markup=False)
                asked = time.monotonic()
            for service in (self._label_studio, self._polyvox):
                if not service.running:
                    raise DemoError(f"{service.name} stopped. The end of {service.log}:\n{service.log_tail()}")
            time.sleep(0.5)

    def _start_servers(self) -> None:
        self._label_studio.start()
        self._polyvox.start()
        for service in (self._label_studio, self._polyvox):
            with self._step(f"Starting {service.name}") as done:
                service.wait_until_up(
                    FIRST_START_TIMEOUT_S,
                    waiting=lambda s: done("the first start makes a database, which takes a minute" if s > 20 else ""),
                )

    def _tell_what_to_look_at(self) -> None:
        say, state = partial(self._console.print, soft_wrap=True), self._state
        say(f"[bold]Label Studio[/bold]  {self._url}/projects/{state.project}/data")
        say(f"\nLog in as any of these; the password of all is [bold]{state.password}[/bold]")
        for persona in PERSONAS:
            say(f"  {persona.email:<31} {persona.says}")
        say(f"  {OWNER_EMAIL:<31} you: has labelled nothing yet, so sees the consensus")
        say(f"\n[bold]Polyvox[/bold]       {self._polyvox_url}\n  user {POLYVOX_USER}, password "
            f"[bold]{state.polyvox_password}[/bold]")
        self._tell_showcases()
        say(f'\nThe same happens behind "Label All Tasks" of the tab "{stage.ALL_TITLE}". On about {self._percent:g} % '
            "of the messages an annotator sees no suggestion (the control arm), so that Polyvox can be judged "
            "honestly. Label a few messages yourself: after 12, 30 and 60 of them you read here what was learned of "
            "you.")

    def _tell_showcases(self) -> None:
        """Messages that two annotators read differently, in a tab of their own in Label Studio, and here."""
        say, state = partial(self._console.print, soft_wrap=True), self._state
        found = watch.differences(self._client, state.project, state.annotators, self._percent)
        cases = showcases(found, truth_of(load(), stage.SEED))
        if not cases:
            say(f"\nThere is no message on which two annotators are predicted to differ, with {SURE:.0%} each.")
            return
        tab = stage.show_first(self._client, state.project, cases)
        say("\n[bold]What to look at first[/bold]: open one of these as two different annotators (a private window for "
            "the second) and compare what is preselected. Nobody has labelled them; what the two would say is known, "
            "since they are simulated, and both predictions are right.")
        say(f"  {self._url}/projects/{state.project}/data?tab={tab}")
        for case in cases:
            say(f'\n  "{case.difference.text}"', markup=False)
            say(f"  {self._url}/projects/{state.project}/data?tab={tab}&task={case.difference.task}")
            for email in case.people:
                label, score = case.difference.labels[email]
                say(f"    {email:<31} {label} ({score:.0%} sure)")
            say(f"    {'consensus':<31} {case.difference.consensus}")

    @contextmanager
    def _step(self, title: str) -> Iterator[Callable[..., None]]:
        """A line with a bar on a terminal, plain text elsewhere. Yields a function that takes a note and a fraction."""
        start = time.monotonic()
        last = ""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn(),
                   TextColumn("{task.fields[note]}"))
        with Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal) as bar:
            line = bar.add_task(title, total=None, note="")

            def tell(note: str, fraction: float | None = None) -> None:
                nonlocal last
                last = note
                bar.update(line, note=note, total=1.0 if fraction else None, completed=fraction or 0.0)

            yield tell
        note = f" ({last})" if last else ""
        self._console.print(f"{title}: {time.monotonic() - start:.1f} s{note}", highlight=False, soft_wrap=True)

    def __enter__(self) -> Show:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave servers behind
        try:
            self._polyvox.stop()
            self._label_studio.stop()
        finally:
            signal.signal(signal.SIGINT, before)


def polyvox(state: State, *, control_arm_percent: float, **settings: str) -> Service:
    """The Polyvox service of the demo, not started yet; `settings` are further environment variables."""
    address = url(state.polyvox_port)
    if state.polyvox_login is not None:
        settings = {"BASIC_AUTH_USER": POLYVOX_USER, "BASIC_AUTH_PASS": state.polyvox_password, **settings}
    env = clean_env(
        LABEL_STUDIO_URL=url(state.label_studio_port),
        LABEL_STUDIO_API_KEY=state.owner_token,
        POLYVOX_URL=address,
        POLYVOX_WEBHOOK_SECRET=state.webhook_secret,
        POLYVOX_DATA_DIR=str(state.folder / "polyvox"),
        POLYVOX_CONTROL_ARM_PERCENT=str(control_arm_percent),
        PYTHONUNBUFFERED="1",
        **settings,
    )
    command = [sys.executable, "-m", "backend", "serve", "--host", LOOPBACK, "--port", str(state.polyvox_port)]
    return Service(
        "Polyvox", command, env=env, log=state.folder / "polyvox.log", health=f"{address}/health", cwd=REPOSITORY
    )
