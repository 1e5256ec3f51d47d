"""Addresses are shown without their secrets: in text of all sorts, and where pages and logs show them."""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path

import pytest

from backend.masking import masked
from backend.report.texts import texts_of
from backend.services.webhook_check import address
from backend.settings import Settings
from backend.store import open_store
from backend.telemetry import configure_logging
from tests.backend.small_services import CONFIG
from tests.backend.store.samples import KEY, snapshot

SIGNED = "https://bucket.example.org/a/cat.png?X-Amz-Credential=AKIA1&X-Amz-Signature=c0ffee"


@pytest.mark.parametrize("text, shown", [
    ("nothing here", "nothing here"), ("a@b and c?d=e", "a@b and c?d=e"),
    ("http://h/p", "http://h/p"), (f"see {SIGNED}.", "see https://bucket.example.org/a/cat.png?***"),
    ("s3://me:pass@h:9/p/q@2x.png", "s3://***@h:9/p/q@2x.png"), ("http://p@ss:w@rd@h/", "http://***@h/"),
    ("x=redis://:pass@r:6379/0", "x=redis://***@r:6379/0"), ("http://token@[::1]/", "http://***@[::1]/"),
    ("(http://h/?a=1#access_token=2) http://u:p@h", "(http://h/?***#*** http://***@h"), ("http://h/?", "http://h/?"),
    ('<a href="https://u:p@h/x?sig=1">', '<a href="https://***@h/x?***">'),
    ("postgresql+psycopg://u:p@db/x?password=y", "postgresql+psycopg://***@db/x?***"),
])
def test_secrets_of_addresses_are_hidden(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(shown) == shown
    kept = masked(text, keep_length=True)
    assert len(kept) == len(text) and "c0ffee" not in kept and "pass" not in kept


def test_it_takes_no_longer_than_the_text_is_long() -> None:
    began = time.process_time()
    for part in ("a" * 30, "a://", "a://@", "a://?#", "http://u:", "x" * 31 + "://@@@"):
        masked(part * (300_000 // len(part)))
    assert time.process_time() - began < 5.0


def test_settings_logs_webhooks_and_pages(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, redis_url="redis://r/0?password=hunter2", url="http://me:hunter2@h?x=hunter2")
    said = io.StringIO()
    configure_logging(settings, said)
    logging.getLogger("backend").warning("no answer of %s", SIGNED + " http://me:hunter2@h/")
    store = open_store(settings.database_url)
    project = store.projects.ensure(KEY, label_config=CONFIG)
    store.tasks.take_over(KEY, [snapshot(1, data={"text": f"look: {SIGNED} http://me:hunter2@h/x"})])
    shown = [said.getvalue(), repr(settings), texts_of(store, project)([1])[1], address("http://me:hunter2@h:x/?hunter2")]
    store.close()
    assert "bucket.example.org" in shown[0] and "bucket.example.org" in shown[2]
    assert [each for each in shown if "hunter2" in each or "c0ffee" in each] == []
