"""The secret key of Label Studio: made once, kept, readable back by what Label Studio reads it with."""

from __future__ import annotations

import re
from pathlib import Path

from demo.label_studio import keep_secret_key


def test_a_key_is_made_once_and_needs_no_quoting(tmp_path: Path) -> None:
    keep_secret_key(tmp_path)
    file = tmp_path / ".env"
    first = file.read_text()
    assert re.fullmatch(r"SECRET_KEY=[0-9a-f]{64}\n", first) and file.stat().st_mode & 0o777 == 0o600
    keep_secret_key(tmp_path)
    assert file.read_text() == first
