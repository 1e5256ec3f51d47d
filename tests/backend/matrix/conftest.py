"""One app on real services with a published version, and a database that is put back after every case."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from backend.app import create_app
from backend.bootstrap import Services
from backend.records import JobKind
from tests.backend.matrix.bench import Bench
from tests.backend.web.trained import KEY, trained_services

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = trained_services(tmp_path_factory.mktemp("matrix"), max_body_mb=2.0)
    made.store.jobs.enqueue(JobKind.RECONCILE, KEY)
    yield made
    made.close()


@pytest.fixture(scope="session")
def bench(services: Services) -> Iterator[Bench]:
    file = Path(services.settings.database_url.removeprefix("sqlite:///"))
    logger, level = logging.getLogger("backend"), logging.getLogger("backend").level
    bench = Bench(create_app(services), sqlite3.connect(file, isolation_level=None))
    root = logging.getLogger()
    root.addHandler(bench.log)
    logger.setLevel(logging.DEBUG)
    yield bench
    logger.setLevel(level)
    root.removeHandler(bench.log)
    bench.close()
