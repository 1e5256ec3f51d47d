"""Watching a job from the command line; where no job process takes it, it is worked off right here."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from backend.errors import PolyvoxError
from backend.ports import Store
from backend.records import Job, JobState
from backend.settings import Settings

PATIENCE_S = 3.0  # a job process that is idle takes a job within a second
LOOK_S = 0.2
ENDED = (JobState.DONE, JobState.FAILED)


def follow(store: Store, settings: Settings, job: Job, console: Console) -> Job:
    """Wait for the job's end, showing its progress, and return the ended job.

    A job that still waits after a few seconds is taken into this process. Raises PolyvoxError when the job failed.
    """
    with Progress(TextColumn("{task.fields[kind]}"), BarColumn(), TextColumn("{task.description}"),
                  console=console, transient=True) as bar, contextlib.ExitStack() as stack:
        line = bar.add_task("waits for the job process", total=1.0, kind=str(job.kind))
        helped, until = False, time.monotonic() + PATIENCE_S
        while job.state not in ENDED:
            if job.state is JobState.QUEUED and time.monotonic() > until and not helped:
                helped = True
                stack.enter_context(_work_here(settings))
            time.sleep(LOOK_S)
            job = store.jobs.get(job.id) or job
            waits = f"tried again at {job.not_before:%H:%M:%S} UTC: {job.error}" if job.error else "waits its turn"
            bar.update(line, completed=job.progress, description=job.note if job.state is JobState.RUNNING else waits)
    if job.state is not JobState.DONE:
        raise PolyvoxError(job.error or "The job failed.")
    return job


@contextlib.contextmanager
def _work_here(settings: Settings) -> Iterator[None]:
    """A job process inside this one, for as long as the block lasts."""
    from backend.worker import Worker, be_nice

    be_nice(settings.train_threads)
    from backend.bootstrap import build_queue, build_services

    services = build_services(settings)
    worker = Worker(services, build_queue(services))
    thread = threading.Thread(target=worker.run, name="worker")
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()
        services.close()
