"""Whether this Polyvox is the one that its database says, or a copy of it; a copy changes nothing in Label Studio.

A database is copied with all that it knows: which webhooks are ours, which predictions we delivered and may delete. Two
that both act on it take each other's predictions away. So a copy reads and learns, but registers no webhook, delivers
nothing and keeps no tabs, until somebody says `python -m backend adopt`, which makes it an instance of its own.

Two signs tell: the database lies elsewhere than where it got its id (`store.place`); or Label Studio, the one place
that both share, shows that another holder of the same id was there since (`webhook_lease`), which finds copies of
whole disks."""

from __future__ import annotations

from backend.ports import InstanceStore

ADOPT = "python -m backend adopt"
_UNTIL = (f"Until somebody runs `{ADOPT}` (in a container: `docker compose exec polyvox {ADOPT}`) it reads and learns, "
          "but registers no webhook and delivers nothing.")
_WHEN = "Run it when the other one is gone, or when this one is to work for another Label Studio."


def held(instance: InstanceStore) -> str:
    """A sentence when this Polyvox must ask before it changes anything in Label Studio, else ""."""
    found = instance.get()
    if found.contested:
        return (f"Another Polyvox with the same database has written our webhook in Label Studio, at "
                f"{found.contested}: one of the two is a copy, or this is an older state of the database. "
                f"{_UNTIL} {_WHEN}")
    if found.moved:
        return ("This database was copied or restored from another place, where a Polyvox may still be at work with "
                f"it. {_UNTIL} {_WHEN}")
    return ""
