"""The Triton kernels against the plain forms, in Triton's interpreter: a process of its own, since the choice between
interpreter and compiler is made when Triton is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_CHECK = """
import json, torch
from model.qumab import kernels
from model.qumab.folded import Reading, among, attend_plainly

torch.set_num_threads(1)
torch.manual_seed(0)

def difference(fast, exact, x):
    a, b = x.clone().requires_grad_(), x.float().requires_grad_()
    left, right = fast(a), exact(b)
    weight = torch.randn_like(right)
    (ga,), (gb,) = torch.autograd.grad(left, a, weight.to(left.dtype)), torch.autograd.grad(right, b, weight)
    off = (left.float() - right).detach().norm() / right.detach().norm()
    return [float(off), float((ga.float() - gb).norm() / gb.norm())]

found = {}
for tokens, queries in ((17, 5), (37, 40)):  # 40 queries x 4 groups take two blocks of rows
    side = (0.2 * torch.randn(4, 3, queries, 96)).half()
    features, rows, hidden = torch.randn(6, tokens, 96).half(), torch.tensor([4, 0, 4]), torch.zeros(3, tokens)
    hidden[0, tokens - 3 :] = -torch.inf
    hidden[1] = -torch.inf
    exact = Reading(tokens=features.float(), rows=rows, hidden=hidden)
    found[f"attend {tokens}"] = difference(
        lambda x: kernels.attend(x, features, rows, hidden)[0], lambda x: attend_plainly(x, exact), side
    )
    packed = torch.randn(4, queries, 3 * 3 * 16).half()
    found[f"among {queries}"] = difference(lambda x: kernels.among(x, 3), lambda x: among(x, 3), packed)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def differences():
    done = subprocess.run(
        [sys.executable, "-c", _CHECK], cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=120,
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}, check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["attend 17", "attend 37", "among 5", "among 40"])
def test_kernels_compute_what_the_plain_forms_do(differences, name):
    output, gradient = differences[name]
    assert output < 2e-3 and gradient < 2e-3
