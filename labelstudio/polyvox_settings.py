"""Django settings for a Label Studio that shows each annotator their own predicted label.

Everything is Label Studio's own, plus the middleware and its options. Environment: POLYVOX_CONTROL_ARM_PERCENT
(default 10; the same value as the Polyvox server's), POLYVOX_SHOW_ALL_TABS (default false).
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from labelstudio.options import Options

# Label Studio's modules import each other as top-level names (`core`, `tasks`); its start script does the same.
_package = find_spec("label_studio")
if _package is None or _package.origin is None:
    raise ImportError("labelstudio.polyvox_settings needs Label Studio: start it from the environment that has it.")
if (_folder := str(Path(_package.origin).parent)) not in sys.path:
    sys.path.insert(0, _folder)

# `base` first, and all of it: while the stock settings are imported, Django is asked for settings, and finds what this
# module has so far.
# isort: off
from core.settings.base import *  # type: ignore[import-not-found,unused-ignore]  # noqa: E402, F403
from core.settings.label_studio import *  # type: ignore[import-not-found,unused-ignore]  # noqa: E402, F403
from core.settings import label_studio as _stock  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
# isort: on

POLYVOX = Options.from_env(os.environ)

# Last, so innermost: the user is known by then, and Label Studio's retries of a locked database go around it.
MIDDLEWARE = [*_stock.MIDDLEWARE, "labelstudio.middleware.OwnPredictions"]

LOGGING = {  # its own entry, since Label Studio's root logger is silent below WARNING
    **_stock.LOGGING,
    "loggers": {
        **_stock.LOGGING["loggers"],
        "labelstudio": {"handlers": ["console"], "level": "INFO", "propagate": False},
    },
}
