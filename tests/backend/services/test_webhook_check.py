"""Webhooks and models of a project, judged: each trouble by its own sentence, and none where all is well."""

from __future__ import annotations

from typing import Any

import pytest

from backend.services.webhook_check import SECRET_HEADER, Seen, address, problems

URL = "https://polyvox.example.org"
SECRET = {SECRET_HEADER: "s3cret"}


def hook(number: int, base: str = URL, **more: Any) -> dict[str, Any]:
    usual = {"id": number, "url": f"{base}/webhook", "headers": {}, "is_active": True, "send_for_all_actions": True,
             "actions": []}
    return usual | more


def model(url: str = URL, version: str | None = "consensus@r3") -> dict[str, Any]:
    return {"id": 1, "url": url, "model_version": version}


def said(*, hooks: list[dict[str, Any]], models: list[dict[str, Any]], **more: Any) -> list[str]:
    return problems(Seen(webhooks=hooks, backends=models, **more))


@pytest.mark.parametrize("case", [
    {"hooks": [hook(1)], "models": [model()]},
    {"hooks": [hook(1)], "models": [model()], "url": URL},
    {"hooks": [hook(1, headers=SECRET)], "models": [model()], "url": URL, "secret": "s3cret"},
    {"hooks": [hook(1)], "models": [model(URL + "/", "consensus@r0")], "url": "https://POLYVOX.example.org:443/"},
    {"hooks": [hook(1), hook(2, "https://other.example.org")],
     "models": [model(), model("https://other.example.org", "yolo-3")]},
    {"hooks": [hook(1), {"id": 2, "url": "https://chat.example.org/hooks/abc"}], "models": [model()]},
    {"hooks": [hook(1)], "models": [], "url": URL},
    {"hooks": [], "models": []},
    {"hooks": [], "models": [model("https://other.example.org", "yolo-3")]},
    {"hooks": [hook(1, send_for_all_actions=False,
                    actions=["ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED"])], "models": [model()]},
])
def test_nothing_is_said_where_all_is_well(case: dict[str, Any]) -> None:
    assert said(**case) == []


def test_the_half_state_is_explained_with_its_cure() -> None:
    (sentence,) = said(hooks=[], models=[model("http://10.0.0.7:9090", "consensus@r0")], reconcile_every_s=120)
    for words in ("no webhook to http://10.0.0.7:9090", "SSRF_PROTECTION_ENABLED=false and ML_BLOCK_LOCAL_IP=false",
                  "set POLYVOX_URL", "add http://10.0.0.7:9090/webhook by hand", "up to 120 s late"):
        assert words in sentence, words


def test_a_webhook_that_was_refused_says_why() -> None:
    base = "http://127.0.0.1:9090"
    (private,) = said(hooks=[], models=[model(base)], url=base, refused=403)
    assert "refused the webhook to http://127.0.0.1:9090 (403)" in private
    assert "SSRF_PROTECTION_ENABLED=false" in private
    (unknown,) = said(hooks=[], models=[model()], url=URL, refused=400)
    assert "(400)" in unknown and "can resolve" in unknown and "SSRF" not in unknown


@pytest.mark.parametrize("case", [
    {"models": [model("http://polyvox:9090")]}, {"models": [], "url": "http://polyvox:9090", "refused": 400}])
def test_a_bare_host_name_is_the_cause(case: dict[str, Any]) -> None:
    (sentence,) = said(hooks=[], **case)
    assert "the host name has no dot" in sentence and "network alias" in sentence


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "polyvox.internal"])
def test_other_host_names_are_not(host: str) -> None:
    (sentence,) = said(hooks=[], models=[model(f"http://{host}:9090")])
    assert "dot" not in sentence


def test_leftovers_of_earlier_backends_are_named_without_their_secrets() -> None:
    old = hook(7, "http://someone:pw@old.example.org:9090/tool")
    (sentence,) = said(hooks=[hook(1), old, hook(8, "http://gone.example.org", is_active=False)], models=[model()])
    assert "http://old.example.org:9090/tool/webhook (number 7)" in sentence
    assert "pw" not in sentence and "someone" not in sentence and "number 8" not in sentence


def test_a_leftover_is_seen_where_polyvox_is_gone_as_well() -> None:
    (sentence,) = said(hooks=[hook(3)], models=[])
    assert f"{URL}/webhook (number 3)" in sentence


def test_two_webhooks_to_us() -> None:
    (sentence,) = said(hooks=[hook(1), hook(2)], models=[model()])
    assert "2 webhooks to Polyvox" in sentence and "(number 2)" in sentence and "(number 1)" not in sentence


def test_two_addresses_of_the_same_polyvox() -> None:
    private = "http://10.0.0.7:9090"
    (sentence,) = said(hooks=[hook(1, private), hook(2)], models=[model(private)], url=URL)
    assert "delete http://10.0.0.7:9090/webhook (number 1)" in sentence
    assert "connect the model under POLYVOX_URL" in sentence


def test_a_webhook_without_the_secret_has_its_events_refused() -> None:
    (sentence,) = said(hooks=[hook(1)], models=[model()], secret="s3cret")
    assert SECRET_HEADER in sentence and "set POLYVOX_URL" in sentence and "s3cret" not in sentence
    (wrong,) = said(hooks=[hook(1, headers={SECRET_HEADER: "old"})], models=[model()], secret="s3cret", url=URL)
    assert "with the next comparison" in wrong and "old" not in wrong


def test_a_webhook_that_is_off_or_sends_little() -> None:
    (off,) = said(hooks=[hook(1, is_active=False)], models=[model()], secret="x")
    assert "switched off" in off
    (few,) = said(hooks=[hook(1, send_for_all_actions=False, actions=["TASKS_CREATED"])], models=[model()])
    assert "does not send all events" in few


def test_addresses_are_compared_in_one_form() -> None:
    assert address("HTTPS://Me:x@Host.Example:443/a/?q=1#f") == "https://host.example/a"
    assert address("http://host:8080") == "http://host:8080"
    assert address("http://[broken") == "http://[broken"
