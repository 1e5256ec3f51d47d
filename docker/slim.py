"""Makes a virtual environment smaller for an image: takes out what never runs there, and compiles what does.

Left out: tests, headers and programs for building extensions, Arrow's network clients, pip. Compiled are the
modules that Polyvox imports, found by importing them; the rest of the packages (thousands of modules of transformers,
say) stays as source, which is half of the size. Usage: python slim.py VENV APP
"""

from __future__ import annotations

import importlib
import pkgutil
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

# Patterns below site-packages. torch looks for torch_shm_manager in torch/bin when it is imported.
NEVER_RUNS = (
    "torch/test", "torch/include", "torch/bin/[!t]*", "torch/bin/test_*", "torch/lib/*_test.so", "torch/lib/*.a",
    "**/__pycache__",
    "numpy/**/tests", "scipy/**/tests", "sympy/**/tests", "networkx/**/tests", "matplotlib/tests",
    "pyarrow/tests", "pyarrow/include", "pyarrow/libarrow_flight*", "pyarrow/_flight*", "pyarrow/libarrow_s3*",
    "pyarrow/_s3fs*", "pyarrow/src", "numpy/_core/include",
)
# Imported only when they are used first.
LATER = ("transformers.models.bert.modeling_bert", "transformers.models.whisper.modeling_whisper",
         "transformers.models.blip_2.modeling_blip_2", "PIL.PngImagePlugin", "PIL.JpegImagePlugin")

ONLY_WITH = {"model.qumab.kernels": "triton"}  # comes with torch for GPUs


def main(venv: Path, app: Path) -> None:
    """Make `venv` smaller and compile it and `app`."""
    site = next(venv.glob("lib/python3*/site-packages"))
    take_out(site)
    subprocess.run([sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", "pip"], check=True)
    sys.path.insert(0, str(app))
    for name in [*modules(app), *LATER]:
        if find_spec(ONLY_WITH.get(name, name)) is not None:
            importlib.import_module(name)
    compile_imported((venv, app))


def take_out(site: Path) -> None:
    """Remove what `NEVER_RUNS` names."""
    for pattern in NEVER_RUNS:
        for path in list(site.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def modules(app: Path) -> Iterator[str]:
    """Every module of the application but those that run when they are imported."""
    for package in ("backend", "model"):
        for each in pkgutil.walk_packages([str(app / package)], f"{package}."):
            if not each.name.endswith("__main__") and ".migrations" not in each.name:
                yield each.name


def compile_imported(below: tuple[Path, ...]) -> None:
    """Write the bytecode of the modules that are loaded by now and lie below one of the folders."""
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None)
        if source and source.endswith(".py") and any(Path(source).is_relative_to(folder) for folder in below):
            py_compile.compile(source, doraise=True)
    for script in below[-1].rglob("*.py"):
        py_compile.compile(str(script), doraise=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
