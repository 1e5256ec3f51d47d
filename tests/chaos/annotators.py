"""Annotators who never stop: they submit, change and delete annotations through Label Studio's API.

What they meant is not remembered: Label Studio is what the store is compared with, so a request of which nobody knows
whether it arrived is no trouble.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence

import requests

from demo.client import Account, Client, choice
from demo.personas import PERSONAS, Persona
from demo.sample import CONTROL, OBJECT, Message
from tests.e2e.server import LabelStudio

PAUSE_S = 0.15
CHANGES, DELETES = 0.2, 0.05  # shares of what they do


class Annotators:
    """One thread for each account, from `start` to `stop`."""

    def __init__(self, label_studio: LabelStudio, tasks: Sequence[int], messages: Sequence[Message], seed: int) -> None:
        self._label_studio = label_studio
        self._tasks = list(tasks)
        self._message_of = dict(zip(tasks, messages, strict=True))
        self._seed = seed
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.accepted = 0
        self.refused = 0  # answers other than success, while Label Studio answered
        self.unheard = 0  # Label Studio did not answer
        self.slowest_s = 0.0

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._work, args=(number, account), name=account.email, daemon=True)
            for number, account in enumerate(self._label_studio.annotators)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int, *, timeout_s: float = 120.0) -> None:
        """Until `more` further requests were accepted."""
        wanted, deadline = self.accepted + more, time.monotonic() + timeout_s
        while self.accepted < wanted:
            assert time.monotonic() < deadline, "Label Studio accepts no annotations"
            time.sleep(0.02)

    def _work(self, number: int, account: Account) -> None:
        draw = random.Random(f"{self._seed}|{number}")
        client = self._label_studio.as_annotator(account)
        mine: dict[int, int] = {}  # task -> annotation
        while not self._stop.wait(PAUSE_S * draw.uniform(0.5, 1.5)):
            begun = time.monotonic()
            try:
                self._act(draw, client, PERSONAS[number % len(PERSONAS)], mine)
            except requests.HTTPError:
                self._count("refused", begun)
            except requests.RequestException:
                self._count("unheard", begun)
            else:
                self._count("accepted", begun)

    def _act(self, draw: random.Random, client: Client, persona: Persona, mine: dict[int, int]) -> None:
        what, known = draw.random(), sorted(mine)
        if known and what < DELETES:
            task = draw.choice(known)
            client.call("DELETE", f"/api/annotations/{mine.pop(task)}/")
            return
        if known and what < DELETES + CHANGES:
            task = draw.choice(known)
            result = [choice(CONTROL, OBJECT, persona.label(self._message_of[task], draw.randrange(1000)))]
            client.call("PATCH", f"/api/annotations/{mine[task]}/", json={"result": result})
            return
        task = draw.choice(self._tasks)
        result = [choice(CONTROL, OBJECT, persona.label(self._message_of[task], 0))]  # of one mind in all rounds
        mine[task] = client.annotate(task, result)

    def _count(self, what: str, begun: float) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)
            if what != "unheard":
                self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
