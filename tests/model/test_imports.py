import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", [
    "model", "model.config", "model.data.spaces", "model.data.votes", "model.simulate", "model.data.metrics",
    "model.data.splits", "model.encoders", "model.checkpoint", "model.ensemble.consensus", "model.base_models.registry",
    "model.learners.registry",
])
def test_light_modules_load_no_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
