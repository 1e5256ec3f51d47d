"""Makes the two environment files of compose.yaml, with fresh secrets that only their owner may read.

Label Studio's first account gets a legacy token that Polyvox is told as well, so that nobody has to copy one.
Files that are there already are left alone. Usage: python docker/make_env.py [E-MAIL]
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent


def files(email: str) -> dict[str, dict[str, str]]:
    """File name -> variables."""
    token = secrets.token_hex(20)  # a legacy token is 40 hexadecimal digits
    return {
        "label-studio.env": {
            "LABEL_STUDIO_USERNAME": email,
            "LABEL_STUDIO_PASSWORD": secrets.token_urlsafe(15),
            "LABEL_STUDIO_USER_TOKEN": token,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
        },
        "polyvox.env": {
            "LABEL_STUDIO_API_KEY": token,
            "POLYVOX_WEBHOOK_SECRET": secrets.token_urlsafe(30),
            "POLYVOX_SECRET_KEY": base64.urlsafe_b64encode(os.urandom(32)).decode(),
            "BASIC_AUTH_USER": "polyvox",
            "BASIC_AUTH_PASS": secrets.token_urlsafe(15),
        },
    }


def write(path: Path, variables: Mapping[str, str]) -> None:
    """Raises FileExistsError rather than overwrite."""
    text = "".join(f"{name}={value}\n" for name, value in variables.items())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def main(arguments: list[str], folder: Path = FOLDER) -> int:
    wanted = files(arguments[0] if arguments else "owner@example.com")
    there = [name for name in wanted if (folder / name).exists()]
    if there:  # the two share a token, so one alone cannot be renewed
        print(f"Left alone, since it is there already: {', '.join(there)}", file=sys.stderr)
        return 1
    for name, variables in wanted.items():
        write(folder / name, variables)
    account = wanted["label-studio.env"]["LABEL_STUDIO_USERNAME"]
    print(f"Wrote {' and '.join(wanted)} in {folder}.")
    print(f"Log in to Label Studio as {account}; the password is in label-studio.env.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
