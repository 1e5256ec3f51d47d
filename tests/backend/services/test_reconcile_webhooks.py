"""What a walk does about webhooks and models of ours in Label Studio, and what of it may be refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.errors import LabelStudioError
from tests.backend.services.reading_bench import Bench, bench


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as made:
        made.store.projects.ensure(made.key)
        yield made


def test_the_webhook_is_made_where_our_address_is_known(tmp_path: Path) -> None:
    with bench(tmp_path, url="http://polyvox:9090/", webhook_secret="s3cret") as at:
        at.store.projects.ensure(at.key)
        at.reconcile()
        at.reconcile()
        (hook,) = at.studio.hooks
        assert hook["url"] == "http://polyvox:9090/webhook" and hook["headers"].pop("X-Polyvox-Secret") == "s3cret"
        assert hook["headers"]["X-Polyvox-Instance"].partition(".")[0] == at.store.instance.get().id


def test_a_webhook_that_label_studio_refuses_does_not_stop_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench(tmp_path, url="http://10.0.0.1:9090") as at:
        at.store.projects.ensure(at.key)
        at.studio.annotate(at.studio.add_task(at.project_id), 5, "A")

        def refuse(*_: object) -> None:
            raise LabelStudioError("Label Studio answered 403.", retry=False, http_status=403)

        monkeypatch.setattr(at.studio, "register_webhook", refuse)
        assert at.reconcile()["tasks"] == 1


def test_what_is_wrong_with_webhooks_is_kept_for_the_status_page(tmp_path: Path) -> None:
    with bench(tmp_path) as at:
        at.store.projects.ensure(at.key)
        at.studio.backends.append(
            {"id": 1, "project": at.project_id, "url": "http://10.0.0.7:9090", "model_version": "consensus@r0"})
        at.reconcile()
        (sentence,) = at.store.projects.findings(at.key)
        assert "no webhook to http://10.0.0.7:9090" in sentence
        at.studio.register_webhook(at.project_id, "http://10.0.0.7:9090/webhook", {})
        at.reconcile()
        assert at.store.projects.findings(at.key) == []


def test_a_refused_webhook_is_kept_for_the_status_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench(tmp_path, url="http://10.0.0.7:9090") as at:
        at.store.projects.ensure(at.key)

        def refuse(*_: object) -> None:
            raise LabelStudioError("Label Studio answered 403.", retry=False, http_status=403)

        monkeypatch.setattr(at.studio, "register_webhook", refuse)
        at.reconcile()
        (sentence,) = at.store.projects.findings(at.key)
        assert "refused the webhook to http://10.0.0.7:9090 (403)" in sentence


@pytest.mark.parametrize("call", ["ml_backends", "prediction_versions"])
def test_a_token_that_may_not_look_at_models_stops_nothing(
    at: Bench, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    at.studio.annotate(at.studio.add_task(at.project_id), 5, "A")

    def forbidden(project_id: int) -> list[dict[str, Any]]:
        raise LabelStudioError("Label Studio answered 403.", retry=False, http_status=403)

    monkeypatch.setattr(at.studio, call, forbidden)
    assert at.reconcile()["tasks"] == 1
    assert at.store.projects.findings(at.key) == []
