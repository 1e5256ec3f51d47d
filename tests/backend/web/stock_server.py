"""`python tests/backend/web/stock_server.py PORT FOLDER`: PolyvoxBackend under the server of label-studio-ml 1.0.9.

The lines at the end are what `label-studio-ml init` writes into a `_wsgi.py`; only the encoder is the tests' small one.
The SDK runs each event in a process of its own (spawned, so it imports this file again), which makes its services from
the environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from label_studio_ml.api import init_app

from backend.bootstrap import build_services
from backend.ml_backend import PolyvoxBackend
from backend.settings import Settings
from tests.backend.encoders import WordHashEncoder


def main(port: int, folder: Path) -> None:
    PolyvoxBackend._of_process = build_services(Settings.from_env(os.environ), encoder=WordHashEncoder())
    app = init_app(model_class=PolyvoxBackend, model_dir=str(folder), redis_queue="default", redis_host="127.0.0.1",
                   redis_port=1)
    app.run(host="127.0.0.1", port=port)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
