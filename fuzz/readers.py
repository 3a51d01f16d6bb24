"""Readers of files and texts on mutated inputs: a finding is a hang, or an exception that is not a SteelyardError.

An input is a file of corpus/readers/TARGET, mutated by a seed: as bytes, or as a JSON value where it is one. Every
target gets as many inputs as it takes for about equal times. A hang is counted in seconds of the processor.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import steelyard as sy
from fuzz.limits import Hang, long_calls_end, time_limit
from steelyard.benchmark.config import read_bench
from steelyard.benchmark.folder import load_result
from steelyard.comparison.rules import parse_rule
from steelyard.errors import SteelyardError
from steelyard.gating.inputs import gate_input
from steelyard.io import validate_file
from steelyard.io.evidence import read_chunks
from steelyard.io.files import read_bytes
from steelyard.io.published import read_result_table
from steelyard.io.spans import read_spans
from steelyard.judging.guidelines import Guidelines
from steelyard.judgments import Judgments
from steelyard.measures.grammar import parse
from steelyard.retrievers import BM25

CORPUS = Path(__file__).parent / "corpus" / "readers"
LARGEST = 4096  # bytes
QRELS, RUN = sy.Qrels({"q1": {"d1": 1}, "q2": {"d2": 1}}), sy.Run({"q1": {"d1": 1.0}})


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _result(path: Path) -> None:
    load_result(path.parent)


TARGETS: dict[str, Callable[[Path], Any]] = {
    "measure": lambda path: parse(_text(path.read_bytes())),
    "rule": lambda path: parse_rule(_text(path.read_bytes())),
    "run": lambda path: sy.evaluate(QRELS, str(path), ["AP"]),
    "qrels": lambda path: sy.evaluate(str(path), RUN, ["AP"]),
    "validate": lambda path: str(validate_file(path)),
    "dataset": sy.Dataset.read,
    "evidence": lambda path: sy.Evidence.read(path),
    "chunks": read_chunks,
    "judgments": Judgments.read,
    "guidelines": Guidelines.read,
    "gate": gate_input,
    "scores": sy.compare_scores,
    "config": read_bench,
    "history": lambda path: str(sy.history(path)),
    "published": read_result_table,
    "compressed": read_bytes,
    "result": _result,
    "corpus": lambda path: BM25().index(path).retrieve(["fox"], 2),
    "spans": lambda path: read_spans(path, {"q1"}, {"q1": "who?"}),
    "index": lambda path: BM25.load(path).retrieve(["fox", "wolf"], 2),
}
# The files that a target reads besides its own.
SHARED = {"validate": ("run", "qrels", "dataset", "judgments")}
FILE_NAMES = {
    "dataset": "dataset.json",
    "result": "result.json",
    "config": "bench.yaml",
    "guidelines": "guidelines.yaml",
}

WORDS = [
    *(
        b"q1",
        b"d1",
        b"nDCG",
        b"@10",
        b"(",
        b")",
        b"=",
        b",",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"'",
        b"\\",
        b"\n",
        b"\r",
    ),
    *(
        b"\t",
        b" ",
        b"\0",
        b"\xff",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"0",
        b"-1",
        b"1e308",
        b"1e999",
        b"NaN",
    ),
    *(
        b"null",
        b"true",
        b"9" * 30,
        b"9" * 400,
        b"\\ud800",
        b"- ",
        b"#",
        b"!!",
        b"&a",
        b"*a",
        b"<<: ",
        b"query_id",
        b"doc_id",
    ),
    *(b"score", b"grade", b"PAR1", b"\x1f\x8b", b"[" * 300, b'{"a":' * 300, b">= ", b"baseline", b"%", b"../", b"~"),
]
ODD = [
    *(None, True, 0, -1, 1.5, 10**30, 10**400, 1e308, float("nan"), float("inf"), "", "x", "\udc80", "\0", "q1"),
    *("9" * 400, "['a']", [], {}, [[]], [{}], {"a": {}}, {"id": 1}, [1, "a", None], {"d1": {"x": 1}}, [["d1"]]),
]


def mutated_bytes(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(1 + draw.randrange(4) * draw.randrange(3)):
        at, length = draw.randrange(len(text) + 1), 1 + draw.randrange(24)
        kind = draw.randrange(8)
        if kind == 0 and at < len(text):
            text[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del text[at : at + length]
        elif kind == 2:
            other = draw.randrange(len(text) + 1)
            text[at:at] = text[other : other + length]
        elif kind < 5:
            text[at:at] = draw.choice(WORDS)
        elif kind == 5:
            word = draw.choice(WORDS)
            text[at : at + len(word)] = word
        elif kind == 6:
            other_text = draw.choice(others)
            text[at:] = other_text[draw.randrange(len(other_text) + 1) :]
        elif at < len(text):
            text[at] = draw.randrange(256)
    return bytes(text[:LARGEST])


def mutated_value(value: Any, draw: random.Random, share: float) -> Any:
    if draw.random() < share:
        return draw.choice(ODD)
    if isinstance(value, dict):
        return {
            draw.choice(["", "\udc80", "id"]) if draw.random() < 0.03 else name: mutated_value(each, draw, share)
            for name, each in value.items()
            if draw.random() > 0.03
        }
    return [mutated_value(each, draw, share) for each in value] if isinstance(value, list) else value


@dataclass
class Target:
    """One reader: its first inputs, their JSON values, and what was found."""

    name: str
    seeds: list[bytes]
    values: list[Any]
    path: Path
    tried: int = 0
    seconds: float = 0.0
    refused: int = 0
    findings: dict[str, bytes] = field(default_factory=dict)

    def input(self, draw: random.Random) -> bytes:
        if self.tried < len(self.seeds):
            return self.seeds[self.tried]
        if self.values and draw.random() < 0.5:
            value = draw.choice(self.values)
            # A long value has more parts to change, and one change is enough.
            return json.dumps(mutated_value(value, draw, draw.choice([0.005, 0.03, 0.15]))).encode()
        return mutated_bytes(draw.choice(self.seeds), self.seeds, draw)


def targets_in(folder: Path) -> list[Target]:
    found = []
    for name in TARGETS:
        files = [path for kind in SHARED.get(name, (name,)) for path in sorted((CORPUS / kind).glob("*"))]
        seeds = [path.read_bytes() for path in files]
        values = []
        for seed in seeds:
            with contextlib.suppress(ValueError, UnicodeDecodeError, RecursionError):
                values.append(json.loads(seed))
        place = folder / name
        place.mkdir()
        if name == "result":
            make_result(place)
            seeds = [(place / "result.json").read_bytes()]
            values = [json.loads(seeds[0])]
        if name == "index":
            BM25("l").index({"d1": "a fox", "d2": "a wolf, a fox"}).save(place / "seed")
            seeds = [(place / "seed").read_bytes()]
        found.append(Target(name, seeds, values, place / FILE_NAMES.get(name, "file")))
    return found


def make_result(folder: Path) -> None:
    data = sy.Dataset.of(
        {"d1": "a fox", "d2": "a wolf"}, {"q1": "fox", "q2": "wolf"}, {"q1": {"d1": 1}, "q2": {"d2": 1}}
    )
    sy.bench({"dataset": data, "retrievers": ["bm25-okapi", "random"], "measures": ["RR"]}, folder)


def try_input(target: Target, data: bytes, save: Path) -> None:
    target.path.write_bytes(data)
    start = time.process_time()
    try:
        TARGETS[target.name](target.path)
    except SteelyardError:
        target.refused += 1
    except (Exception, Hang) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        key = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
        if key not in target.findings:
            target.findings[key] = data
            name = f"{target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
            save.mkdir(parents=True, exist_ok=True)
            (save / name).write_bytes(data)
            print(f"{target.name}: {key}: {error!r:.200}\n  {name}: {data[:200]!r}", flush=True)
    target.tried += 1
    target.seconds += time.process_time() - start


@contextlib.contextmanager
def quiet_stderr() -> Iterator[TextIO]:
    """Panics of polars are printed before they are raised. Yields the standard error that was there before."""
    with open(os.devnull, "w") as nowhere, os.fdopen(os.dup(2), "w") as kept:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield kept
        finally:
            os.dup2(kept.fileno(), 2)


def fuzz_readers(inputs: int, seconds: float, seed: int, save: Path, folder: Path) -> bool:
    """Try inputs until there were enough, or the time is over; print the figures. True if nothing was found.

    The files are written to `folder`: if an input ends the process, it is the newest one.
    """
    import resource

    warnings.simplefilter("ignore")
    draw, tried = random.Random(seed), 0
    with quiet_stderr() as messages:
        targets = targets_in(folder)
        start = time.perf_counter()
        while tried < inputs and time.perf_counter() - start < seconds:
            long_calls_end(messages)
            target = min(targets, key=lambda one: one.seconds)
            for _ in range(50):
                data = target.input(draw)
                with time_limit():
                    try_input(target, data, save)
            tried += 50
    for target in targets:
        print(f"  {target.name}: {target.tried:,} inputs, {target.refused:,} refused, {target.seconds:.0f} s")
    kinds = Counter("hang" if key.startswith("Hang") else "crash" for one in targets for key in one.findings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"readers: {tried} inputs, {kinds['crash']} crashes, {kinds['hang']} hangs, {peak} MB peak memory")
    return not kinds


if __name__ == "__main__":
    inputs, seconds, seed, save, folder = sys.argv[1:]
    sys.exit(not fuzz_readers(int(inputs), float(seconds), int(seed), Path(save), Path(folder)))
