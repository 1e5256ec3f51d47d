"""Rewrites backend/static/openapi.json from the code; a test fails when it is stale.

Usage: python scripts/update_openapi.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from backend.routes.openapi import document  # noqa: E402  (the project is found by the line above)

if __name__ == "__main__":
    text = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
    (ROOT / "backend" / "static" / "openapi.json").write_text(text, encoding="utf-8")
