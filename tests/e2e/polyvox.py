"""A running Polyvox as the tests see it: its address, and its database read from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backend.bootstrap import open_store
from backend.ports import Store
from backend.records import Job, JobKind, JobState, Project, Verdict, Version
from backend.settings import Settings
from demo.label_studio import url
from demo.processes import Service, free_port
from demo.sample import load
from demo.show import polyvox
from demo.state import State
from demo.watch import is_delivered, status
from tests.e2e.server import OWNER, LabelStudio

PATIENCE_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Polyvox:
    """A running server over an empty folder of its own."""

    url: str
    service: Service
    store: Store

    def project(self, label_studio_id: int) -> Project:
        project = self.store.projects.by_label_studio_id(label_studio_id)
        assert project is not None, "Polyvox was never told of the project"
        return project

    def wait_for_version(self, label_studio_id: int, name: str) -> Version:
        """Wait until a version is recorded, whatever its verdict."""
        key = self.project(label_studio_id).key
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = [each for each in self.store.versions.recent(key) if each.name == name]
            if found:
                return found[0]
            self._still_alive(deadline, f"version {name}")
            time.sleep(0.1)

    def wait_for_published(self, label_studio_id: int, after: Version) -> Version:
        """Wait until a version newer than `after` is published.

        The one in between may be rejected by the luck of which tasks are held out; then one from scratch follows.
        """
        key = self.project(label_studio_id).key
        deadline = time.monotonic() + PATIENCE_S
        while True:
            published = self.store.versions.published(key)
            if published is not None and published.number > after.number:
                return published
            rejected = [each for each in self.store.versions.recent(key, verdict=Verdict.REJECTED)
                        if each.number > after.number]
            assert len(rejected) < 2, [each.reason for each in rejected]
            self._still_alive(deadline, f"a version after {after.name}; {[each.reason for each in rejected]}")
            time.sleep(0.1)

    def wait_for_delivery(self, label_studio_id: int, name: str, *, patience_s: float = PATIENCE_S) -> None:
        """Wait until version `name` is the published one and is in Label Studio."""
        deadline = time.monotonic() + patience_s
        while True:
            now = status(self.url, label_studio_id)
            if now is not None and now["model_version"] == name and is_delivered(now):
                return
            self._still_alive(deadline, f"the delivery of {name}; the status is {now}")
            time.sleep(0.1)

    def finished(self, label_studio_id: int, kind: JobKind) -> list[Job]:
        """Ended jobs of a kind, oldest first."""
        jobs = self.store.jobs.recent(self.project(label_studio_id).key, limit=100)
        return [job for job in reversed(jobs) if job.kind is kind and job.state is JobState.DONE]

    def _still_alive(self, deadline: float, what: str) -> None:
        assert self.service.running, f"Polyvox stopped:\n{self.service.log_tail(60)}"
        assert time.monotonic() < deadline, f"waited too long for {what}\n{self.service.log_tail(60)}"


@contextmanager
def serve(label_studio: LabelStudio, folder: Path, settings: Mapping[str, str], percent: float) -> Iterator[Polyvox]:
    """Start `python -m backend serve` beside a running Label Studio; stopped on leaving."""
    port = free_port()
    state = State(
        folder=folder, password="", owner_token=OWNER.token, webhook_secret="a-secret-of-the-tests",
        label_studio_port=int(label_studio.url.rsplit(":", 1)[1]), polyvox_port=port,
    )
    service = polyvox(state, control_arm_percent=percent, **settings)
    with service:
        service.wait_until_up(120)
        store = open_store(Settings(data_dir=folder / "polyvox"))
        try:
            yield Polyvox(url=url(port), service=service, store=store)
        finally:
            store.close()
    assert_nothing_leaked(service.log.read_text(errors="replace"), label_studio, state)


def assert_nothing_leaked(log: str, label_studio: LabelStudio, state: State) -> None:
    """What Polyvox logged while the tests ran holds no token, no password, no secret and no text of a task."""
    secrets = {"the owner's token": OWNER.token, "the webhook's secret": state.webhook_secret}
    for account in label_studio.annotators:
        secrets |= {f"the password of {account.email}": account.password, f"a token of {account.email}": account.token,
                    f"the personal token of {account.email}": account.personal_token}
    found = [what for what, secret in secrets.items() if secret and secret in log]
    # A message such as "ok" is part of ordinary words; from three words on it could only come from a task.
    texts = [message for message in load() if len(message.text.split()) >= 3]
    found += [f"the text of message {message.id}" for message in texts if message.text in log]
    assert log and not found, f"Polyvox' log holds {', '.join(found) or 'nothing at all'}"
