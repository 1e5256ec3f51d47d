"""Which webhooks and backends a project has in Label Studio, judged: sentences that say what is wrong and what to do.

Label Studio makes a webhook `<address>/webhook` when a backend is connected, and neither removes it with the backend
nor moves it with the address. It makes none, without a word to anybody, when the address is private
(SSRF_PROTECTION_ENABLED; the backend is there all the same, although connecting it seemed to fail) or when its host
name has no dot. Webhooks carry no basic auth. All of this is only reported: a webhook may be somebody else's.

Pure: what was read goes in, sentences come out. Addresses in them are without user names and query strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from backend.masking import masked
from backend.prediction_names import parse
from backend.services.webhook_lease import holder

CHECK = "webhooks"  # under this name the sentences are kept
SECRET_HEADER = "X-Polyvox-Secret"
ROUTE = "/webhook"
NEEDED = {"ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED"}
BY_HAND = "in the project's settings in Label Studio, under Webhooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What Label Studio says of one project, and what Polyvox knows of itself."""

    webhooks: Sequence[Mapping[str, Any]]
    backends: Sequence[Mapping[str, Any]]
    url: str = ""  # POLYVOX_URL
    secret: str = ""  # POLYVOX_WEBHOOK_SECRET
    refused: int | None = None  # HTTP status with which Label Studio refused our webhook just now
    reconcile_every_s: float = 300.0
    instance: str = ""  # our id, which our webhooks carry


def problems(seen: Seen) -> list[str]:
    """Sentences for people, the most important first; [] where all is well."""
    ours = our_addresses(seen)
    to_us = [hook for hook in seen.webhooks if _base(hook.get("url")) in ours]
    rest = _of_others(seen) + _leftovers(seen, ours)
    if not ours:
        return rest
    found = _none_to_us(seen, ours) if not to_us else _several_to_us(seen, to_us) + _unusable(seen, to_us)
    return found + rest


def our_addresses(seen: Seen) -> list[str]:
    """Under which addresses Label Studio reaches this Polyvox: POLYVOX_URL first, then those of its backends, but for
    those of another Polyvox."""
    others = {_base(hook.get("url")) for hook in _others(seen)}
    connected = [each.get("url") for each in seen.backends
                 if parse(each.get("model_version")) is not None and address(str(each.get("url"))) not in others]
    bases = [address(url) for url in (seen.url, *connected) if url]
    return list(dict.fromkeys(bases))


def _others(seen: Seen) -> list[Mapping[str, Any]]:
    """Webhooks that another Polyvox registered: theirs to delete, not ours."""
    mine = address(seen.url) if seen.url else None
    return [hook for hook in seen.webhooks if (found := holder(hook)) is not None and found.instance != seen.instance
            and _base(hook.get("url")) != mine]


def _of_others(seen: Seen) -> list[str]:
    if not (others := _others(seen)):
        return []
    return [f"Another Polyvox serves this project too, at {_named(others)}: each takes away what the other delivered. "
            "Stop one of the two (POLYVOX_DELIVER=no makes one read only). If that one is gone for good, delete its "
            f"webhook {BY_HAND}."]


def _none_to_us(seen: Seen, ours: Sequence[str]) -> list[str]:
    """The half-state: predictions work, events never come."""
    where = ours[0]
    if not _has_dot(where):
        what = (f"Label Studio has no webhook to Polyvox: it refuses {where}, since the host name has no dot. Give "
                "Polyvox a name with one (in Docker a network alias such as polyvox.internal), set POLYVOX_URL to it, "
                "and connect the model under it.")
    elif seen.refused == 403:
        what = (f"Label Studio refused the webhook to {where} (403): it protects private addresses, or the owner of "
                "LABEL_STUDIO_API_KEY may not make webhooks. Start Label Studio with SSRF_PROTECTION_ENABLED=false and "
                "ML_BLOCK_LOCAL_IP=false, or give Polyvox a public address.")
    elif seen.refused is not None:
        what = (f"Label Studio refused the webhook to {where} ({seen.refused}): POLYVOX_URL has to be an address that "
                "Label Studio can resolve.")
    else:
        cure = f"set POLYVOX_URL, so that Polyvox registers its webhook, or add {where}{ROUTE} by hand {BY_HAND}"
        what = (f"Label Studio has Polyvox as a model, but no webhook to {where}, so it never tells of new labels. "
                "Connecting a model with a private address leaves this half behind, and says 403, while "
                "SSRF_PROTECTION_ENABLED is on. If the address is private, start Label Studio with "
                f"SSRF_PROTECTION_ENABLED=false and ML_BLOCK_LOCAL_IP=false; then {cure}.")
    return [f"{what} Until then labels are seen up to {seen.reconcile_every_s:g} s late."]


def _several_to_us(seen: Seen, to_us: Sequence[Mapping[str, Any]]) -> list[str]:
    if len(to_us) < 2:
        return []
    kept = next((hook for hook in to_us if seen.url and _base(hook.get("url")) == address(seen.url)), to_us[0])
    rest = _named([hook for hook in to_us if hook is not kept])
    then = ", and connect the model under POLYVOX_URL" if _moved(seen) else ""
    return [f"Label Studio has {len(to_us)} webhooks to Polyvox and sends every event to each, while the annotator "
            f"waits: delete {rest} {BY_HAND}{then}."]


def _moved(seen: Seen) -> bool:
    """Whether the model is connected under another address than POLYVOX_URL; its webhook would come again."""
    return bool(seen.url) and our_addresses(seen) != [address(seen.url)]


def _unusable(seen: Seen, to_us: Sequence[Mapping[str, Any]]) -> list[str]:
    """What keeps events from coming in although there is a webhook."""
    found = []
    active = [hook for hook in to_us if hook.get("is_active", True)]
    if not active:
        found.append(f"The webhook to Polyvox is switched off: switch on {_named(to_us)} {BY_HAND}.")
    fitting = [hook for hook in active if (hook.get("headers") or {}).get(SECRET_HEADER) == seen.secret]
    if active and seen.secret and not fitting:
        cure = "it is set with the next comparison" if seen.url else (
            "set POLYVOX_URL, so that Polyvox sets it, or enter it by hand")
        found.append(f"Events are refused, since no webhook carries the secret: {_named(active)} needs the header "
                     f"{SECRET_HEADER}; {cure}.")
    telling = [hook for hook in active
               if hook.get("send_for_all_actions", True) or set(hook.get("actions") or ()) >= NEEDED]
    if active and not telling:
        found.append(f"The webhook {_named(active)} does not send all events of annotations: choose all {BY_HAND}.")
    return found


def _leftovers(seen: Seen, ours: Sequence[str]) -> list[str]:
    """Webhooks as Label Studio makes them for a backend, whose backend is gone."""
    connected = {address(str(each.get("url"))) for each in seen.backends} | set(ours)
    others = _others(seen)
    left = [hook for hook in seen.webhooks if hook.get("is_active", True) and hook not in others
            and (base := _base(hook.get("url"))) is not None and base not in connected]
    if not left:
        return []
    return [f"Label Studio still sends events to {_named(left)}, where no model of this project is connected any more "
            f"(it keeps the webhook when a model is removed or moved). If nothing listens there any more, delete it "
            f"{BY_HAND}: annotators wait for it with each Submit."]


def _named(hooks: Sequence[Mapping[str, Any]]) -> str:
    return " and ".join(f"{address(str(hook.get('url')))} (number {hook.get('id')})" for hook in hooks)


def _base(url: object) -> str | None:
    """The backend's address of a webhook that Label Studio made for one; None for webhooks of another form."""
    cleaned = address(str(url))
    return cleaned.removesuffix(ROUTE) if cleaned.endswith(ROUTE) else None


def address(url: str) -> str:
    """Scheme, host, port and path, comparable; without user name, query and trailing slash."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return masked(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    name = parts.hostname or ""
    host = (f"[{name}]" if ":" in name else name) + (f":{port}" if port and port != default else "")
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def _has_dot(url: str) -> bool:
    """Whether Label Studio's validator of webhook addresses takes the host: a name with a dot, localhost, an IP."""
    host = urlsplit(url).hostname or ""
    return "." in host or ":" in host or host == "localhost"
