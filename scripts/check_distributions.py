"""Build the wheel, the pure-Python wheel and the source distribution, and test each in an empty environment.

    python scripts/check_distributions.py [--output dist]

The source distribution is installed twice: with the compiler, and with a compiler that always fails, where the
installation must fall back to pure Python. Needs the package `build`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILERS = ("c++", "g++", "clang++", "cl")
PURE = {"STEELYARD_PURE": "1"}
BROKEN = {name: shutil.which("false") or "false" for name in ("CC", "CXX")}


def run(*command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints; if it fails, that is shown and the script stops."""
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**settings, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


def build(output: Path) -> tuple[Path, Path, Path]:
    """The source distribution, the wheel built from it, and the pure-Python wheel."""
    shutil.rmtree(output, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", output)
    (sdist,), (wheel,) = output.glob("*.tar.gz"), output.glob("*.whl")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", output / "pure", environment=PURE)
    (pure,) = (output / "pure").glob("*.whl")
    if not pure.name.endswith("-py3-none-any.whl"):
        sys.exit(f"{pure.name} is not a pure-Python wheel")
    return sdist, wheel, pure


def check(title: str, file: Path, kernel: str, environment: Mapping[str, str] | None = None) -> None:
    """Install a distribution into an empty environment and run the smoke test there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv")
        python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        # Our own pip: unpacking another into each environment takes longer than the tests there, and can fail.
        pip = (sys.executable, "-m", "pip", "--python", python)
        run(*pip, "install", "--quiet", file, cwd=folder, environment=environment)
        shown = run(python, ROOT / "scripts" / "smoke.py", "--kernel", kernel, cwd=folder)
    print(f"\n== {title}: {file.name}\n{shown}", flush=True)


def main() -> None:
    """Build and check every distribution."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the distributions are written")
    sdist, wheel, pure = build(parser.parse_args().output.resolve())
    compiler = any(map(shutil.which, COMPILERS))
    native = "required" if compiler else "absent"
    from_source = "source distribution" if compiler else "source distribution, no compiler on this machine"
    checks = (
        (from_source, sdist, native),
        ("wheel", wheel, native),
        ("pure-Python wheel", pure, "absent"),
        ("source distribution, with a compiler that fails", sdist, "absent", BROKEN),
    )
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(check, *each) for each in checks]:
            done.result()
    print(f"\nBuilt and tested: {sdist.name}, {wheel.name}, {pure.name}")


if __name__ == "__main__":
    main()
