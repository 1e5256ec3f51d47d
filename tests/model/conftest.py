"""Common to the tests of `model`: one thread, so that results repeat bit for bit and neighbours keep their cores."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch.set_num_threads(1)
