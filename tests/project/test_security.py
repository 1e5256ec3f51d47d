"""docs/security.md names every route that the app has, and no other, and says of each whether it changes something."""

from __future__ import annotations

import re
from pathlib import Path

from flask import Flask

from backend.routes import BLUEPRINTS

PAGE = (Path(__file__).parents[2] / "docs/security.md").read_text(encoding="utf-8")
CHANGING = {"/setup", "/predict", "/versions", "/webhook", "/train", "/projects/<project>/flags",
            "/api/projects/<project>/flags/check"}


def rows() -> dict[str, str]:
    """route -> what it can change, as the table says."""
    found = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `/"):
            assert len(cells) == 5, line
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), cells[4])
    return found


def routes() -> set[str]:
    app = Flask(__name__)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    return {str(rule.rule) for rule in app.url_map.iter_rules()}


def test_the_table_names_every_route_and_no_other() -> None:
    named = set(rows())
    assert "/api/..." in named
    assert {route for route in routes() if not route.startswith("/api/")} <= named
    assert named - {"/api/..."} <= routes()


def test_what_changes_nothing_says_so() -> None:
    for route, change in rows().items():
        assert change.startswith("nothing") is (route not in CHANGING), route
