"""`python -m fuzz`: the kernel, the readers and the commands on odd inputs. Exit code 1 if anything was found.

--seconds: of each program. --inputs: of the kernel's readers; BM25 and the readers in Python, which are slower, get a
tenth. --commands: odd commands over all verbs. --seed: other inputs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "fuzz"
FOUND = HERE / "found"
SANITIZED = [
    "-std=c++17",
    "-O2",
    "-g1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-ffp-contract=off",
]


PROGRAMS = {"kernel": ("pieces.cpp", "scan.cpp"), "sparse": ()}
"""The programs that try inputs on the kernel, and the sources of the kernel that they need."""


def build(compiler: str, name: str) -> Path:
    """A program that tries inputs on the kernel. The code under test reports its branches to the driver."""
    BUILD.mkdir(parents=True, exist_ok=True)
    kernel = HERE.parent / "src" / "kernel"
    objects = []
    for source in (*(kernel / each for each in PROGRAMS[name]), HERE / f"{name}.cpp", HERE / "driver.cpp"):
        options = ["-std=c++17", "-O2"] if source.stem == "driver" else [*SANITIZED, "-fsanitize-coverage=trace-pc"]
        objects.append(str(BUILD / f"{source.stem}.o"))
        subprocess.run([compiler, *options, "-c", str(source), "-o", objects[-1]], check=True)
    program = BUILD / name
    subprocess.run([compiler, *SANITIZED, *objects, "-pthread", "-o", str(program)], check=True)
    return program


def fuzz_kernel(name: str, inputs: int, seconds: float, seed: int) -> bool:
    FOUND.mkdir(exist_ok=True)
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        print(f"{name}: not tried, there is no {compiler}")
        return True
    given = [HERE / "corpus" / name, FOUND, inputs, seconds, seed]
    done = subprocess.run([str(build(compiler, name)), *map(str, given)], check=False)
    if done.returncode:
        print(f"{name}: {'a hang' if done.returncode == 3 else 'a crash'}; the input is in {FOUND}")
    return done.returncode == 0


def fuzz_readers(inputs: int, seconds: float, seed: int) -> bool:
    """In a process of their own, which an input may end."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        given = [inputs, seconds, seed, FOUND, folder]
        done = subprocess.run([sys.executable, "-m", "fuzz.readers", *map(str, given)], check=False)
        if done.returncode not in (0, 1):
            last = max(Path(folder).glob("*/*"), key=lambda path: path.stat().st_mtime_ns)
            shutil.copy(last, FOUND / f"{last.parent.name}-ended")
            print(f"readers: a crash of the process ({done.returncode}); the input is in {FOUND}")
    return done.returncode == 0


def fuzz_commands(commands: int, seed: int) -> bool:
    """In a process of their own: they have no network, and one may end the process."""
    with tempfile.TemporaryDirectory() as folder:
        given = [commands, seed, folder]
        done = subprocess.run([sys.executable, "-m", "fuzz.commands", *map(str, given)], check=False)
        if done.returncode not in (0, 1):
            last = (Path(folder) / "last").read_text()
            print(f"commands: a crash of the process ({done.returncode}) by {last}")
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--commands", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    inputs = given.inputs or 10**12
    seconds = given.seconds or (1e9 if given.inputs else 12)
    fewer = max(1, inputs // 10)
    found = {name: fuzz_kernel(name, inputs if name == "kernel" else fewer, seconds, given.seed) for name in PROGRAMS}
    readers = fuzz_readers(fewer, seconds, given.seed)
    commands = fuzz_commands(given.commands, given.seed)
    return 0 if all(found.values()) and readers and commands else 1


raise SystemExit(main())
