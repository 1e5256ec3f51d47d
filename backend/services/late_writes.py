"""Writes of web requests that the database did not take in time: kept on disk, or in memory, until it does.

What is kept are marks of tasks and comparisons that an event asked for, and that predictions were shown. It is taken in
by the process that kept it, by a thread that lives as long as there is something, and by job processes at their ticks.

Invariants: a request waits `WEBHOOK_S` for the database at most; what was answered with 201 is on disk, or, where the
disk takes nothing either, in memory within a bound, beyond which whole projects are read again. What dies with the
memory is found by the comparison at the next start, as everything that happens while Polyvox is off.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from backend.errors import ClientError
from backend.ports import Store
from backend.records import EVERY_TASK, JobKind
from backend.store.journal import ALL, MARK, Entry, Journal, shortened
from backend.store.patience import AWAY, patience, why

logger = logging.getLogger(__name__)

WEBHOOK_S = 0.25
RETRY_S = 1.0
PATIENCE_S = 5.0  # of who takes in
COMPARE = "compare"  # [COMPARE, project]; "" stands for all projects
SHOWN = "shown"  # [SHOWN, project, [task, ...], time]
ARM = "arm"  # [ARM, project, version, [[task, annotator], ...]]
MOST_IN_MEMORY = 256 * 1024  # bytes, as they would stand in the file
MOST_UNREAD = 50  # projects that nobody has read yet


class LateWrites:
    """One per process. Safe for threads."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._lock = threading.Lock()
        self._memory: list[Entry] = []
        self._in_hand = False  # what was in memory is being written, and may come back
        self._thread: threading.Thread | None = None
        self.disk_fails = ""  # why the journal could not be written, while something is in memory

    def keep(self, entries: Sequence[Entry], *, in_memory: bool = True) -> bool:
        """Keep entries for later; False where they may not be kept in memory, and the disk takes them not."""
        try:
            self._journal.append(entries)
        except OSError as error:
            if not in_memory:
                return False
            with self._lock:
                self.disk_fails = error.strerror or str(error)
                self._memory = shortened([*self._memory, *entries], MOST_IN_MEMORY)
        self._start()
        return True

    def take_in(self) -> None:
        """Write everything that waits into the database. Raises one of `AWAY`, or OSError; then it waits on."""
        with self._lock:
            mine, self._memory = self._memory, []
            self._in_hand = bool(mine)
        try:
            if mine:
                self._use(mine, 0)
        except AWAY:
            with self._lock:
                self._memory = shortened([*mine, *self._memory], MOST_IN_MEMORY)
            raise
        finally:
            self._in_hand = False
        self.disk_fails = ""
        count = self._journal.take(self._use)
        if count or mine:
            logger.info("%d late writes were taken in", count + len(mine))

    def problems(self, *, disk_told: bool = False) -> list[str]:
        """What the status says of it; with `disk_told` it has said already that the disk takes nothing."""
        found = []
        if (self._memory or self._in_hand) and not disk_told:
            found.append(f"Events can be kept in memory only ({self.disk_fails}): make room on the disk of the data "
                         "folder. If Polyvox ends before, a comparison with Label Studio finds what they told.")
        if self._journal.collapsed():
            found.append("More events came than the journal holds while the database took none: every task of the "
                         "projects concerned will be read again.")
        if unreadable := self._journal.unreadable():
            found.append(f"Events that were kept in the journal cannot be taken in ({unreadable}): let the folder "
                         "`journal` of the data folder and its files belong to the account that runs Polyvox.")
        return found

    def _use(self, entries: Sequence[Entry], damaged: int) -> None:
        for entry in shortened(entries, 2**40):
            try:
                self._one(entry)
            except AWAY:
                raise
            except (ClientError, SQLAlchemyError, ArithmeticError, AttributeError, ValueError, TypeError,
                    LookupError) as error:
                logger.warning("a late write cannot be taken in (%s)", type(error).__name__)
                damaged += 1
        if damaged:
            logger.warning("%d late writes are damaged; all projects are compared with Label Studio", damaged)
            self._one([COMPARE, ""])

    def _one(self, entry: Entry) -> None:
        kind, key = entry[0], str(entry[1])
        if kind == COMPARE and not key:
            for project in self._store.projects.all():
                self._one([COMPARE, project.key])
            return
        self._store.projects.introduce(key, unread=MOST_UNREAD)
        if kind == MARK:
            self._store.tasks.mark_dirty(key, [int(task) for task in entry[2]])
        elif kind == ALL:
            self._store.tasks.mark_dirty(key, [EVERY_TASK])
            self._one([COMPARE, key])
        elif kind == COMPARE:
            self._store.projects.want_sweep(key)
            self._store.jobs.enqueue(JobKind.RECONCILE, key)
        elif kind == SHOWN:
            self._store.deliveries.remember_shown(key, entry[2], at=datetime.fromisoformat(entry[3]))
        elif kind == ARM:
            self._store.votes.log_arm(key, [(int(task), str(who)) for task, who in entry[3]], version=str(entry[2]))
        else:
            raise ValueError("an entry of another version")

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._drain, name="late-writes", daemon=True)
                self._thread.start()

    def _drain(self) -> None:
        pause = threading.Event()
        while self._more():
            pause.wait(RETRY_S)
            self.try_to_take_in()

    def _more(self) -> bool:
        """Whether something waits; if not, the thread ends, and whoever keeps more starts another."""
        with self._lock:
            more = bool(self._memory) or self._journal.waiting()
            if not more:
                self._thread = None
            return more

    def try_to_take_in(self) -> None:
        """As `take_in`, for some seconds, and says in the log why it could not; nothing is raised."""
        try:
            if self._memory or self._journal.waiting():
                with patience(PATIENCE_S):
                    self.take_in()
        except AWAY as error:
            logger.warning("late writes wait: the database %s", why(error))
        except OSError as error:
            logger.warning("late writes wait: %s", error.strerror or error)
