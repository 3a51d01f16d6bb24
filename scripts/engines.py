"""Benches with search engines among a user's files: nothing of the user's changes, and nothing is left of a bench.

A `Home` is a folder with a temporary folder, a cache folder and a working directory. In all of them are files and
folders under the names that engines use, and each engine has collections there that it made itself. `rounds` kills
benches at random moments: after the next start no folder and no process of theirs is left. It is the part `engines` of
`make faults`.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.retrievers.adapters.postgres import server_package

ROOT = Path(__file__).resolve().parents[1]
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
Settings = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """An engine: its package, code that makes collections of the user's in FOLDER, and the settings of its benches.

    `wrong` are settings that fail. In settings, {folder} is the folder of the collections, {address} the URL of a
    PostgreSQL server with the table `passages`, and "embed" a model.
    """

    package: str
    make: str
    rows: tuple[Settings, ...]
    wrong: Settings


_MODEL: Settings = {"model": "embed"}
_COLLECTION: Settings = {"collection": "passages", **_MODEL}
_TABLE: Settings = {"target": "{address}", "table": "passages"}

CASES = {
    "sqlite-fts": Case(
        "sqlite3",
        """
import sqlite3
connection = sqlite3.connect(FOLDER + "/corpus.db", isolation_level=None)
for name in NAMES:
    connection.execute(f"create virtual table {name} using fts5(key unindexed, text)")
    connection.execute(f"insert into {name} values ('d1', 'the text of a user')")
""",
        ({}, {"target": "{folder}/corpus.db", "table": "passages", "id": "key"}),
        {"target": "{folder}/corpus.db", "table": "nothing"},
    ),
    "sqlite-vec": Case(
        "sqlite_vec",
        """
from steelyard.retrievers.adapters.sqlite import _driver_with_extensions
import sqlite_vec
connection = _driver_with_extensions("").connect(FOLDER + "/corpus.db", isolation_level=None)
connection.enable_load_extension(True)
sqlite_vec.load(connection)
for name in NAMES:
    connection.execute(f"create virtual table {name} using vec0(embedding float[4])")
    connection.execute(f"insert into {name}(rowid, embedding) values (1, ?)", [VECTORS[0].tobytes()])
""",
        (_MODEL, {"target": "{folder}/corpus.db", "table": "passages", **_MODEL}),
        {"target": "{folder}/corpus.db", "table": "passages", "column": "nothing", **_MODEL},
    ),
    "postgres-fts": Case(
        server_package(),
        "",
        ({}, {"target": "{address}"}, {**_TABLE, "column": "words"}),
        {"target": "{address}", "config": "nothing"},
    ),
    "pgvector": Case(
        server_package(),
        "",
        (_MODEL, {"target": "{address}", **_MODEL}, {**_TABLE, **_MODEL}),
        {**_TABLE, **_MODEL, "where": "nothing()"},
    ),
    "lancedb": Case(
        "lancedb",
        """
import lancedb, pyarrow as pa
vector = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 4)
for name in NAMES:
    lancedb.connect(FOLDER).create_table(name, pa.table({"id": [str(n) for n in range(20)], "vector": vector}))
""",
        (_MODEL, {"target": "{folder}", "table": "passages", **_MODEL}),
        {"target": "{folder}", "table": "nothing", **_MODEL},
    ),
    "chroma": Case(
        "chromadb",
        """
import chromadb
client = chromadb.PersistentClient(FOLDER, chromadb.config.Settings(anonymized_telemetry=False))
for name in NAMES:
    client.create_collection(name).add(ids=[str(n) for n in range(20)], embeddings=VECTORS)
""",
        (_MODEL, {"target": "{folder}", **_COLLECTION}),
        {"target": "{folder}", **_COLLECTION, "collection": "nothing"},
    ),
    "milvus": Case(
        "pymilvus",
        """
import pymilvus
client = pymilvus.MilvusClient(FOLDER + "/corpus.db")
for name in NAMES:
    client.create_collection(name, dimension=4, metric_type="COSINE", auto_id=False)
    client.insert(name, [{"id": n, "vector": VECTORS[n]} for n in range(20)])
    client.flush(name)
client.close()
""",
        (_MODEL, {"target": "{folder}/corpus.db", **_COLLECTION}),
        {"target": "{folder}/corpus.db", **_COLLECTION, "collection": "nothing"},
    ),
    "qdrant": Case(
        "qdrant_client",
        """
from qdrant_client import QdrantClient, models
client = QdrantClient(path=FOLDER)
for name in NAMES:
    shape = models.VectorParams(size=4, distance=models.Distance.COSINE)
    client.create_collection(name, vectors_config=shape)
    client.upsert(name, [models.PointStruct(id=n, vector=VECTORS[n].tolist()) for n in range(20)])
client.close()
with open(FOLDER + "/../users_client.py", "w") as file:
    file.write(f"from qdrant_client import QdrantClient\\nclient = QdrantClient(path={FOLDER!r})\\n")
""",
        (_MODEL, {"target": "users_client:client", **_COLLECTION}),
        {"target": "users_client:client", **_COLLECTION, "collection": "nothing"},
    ),
    "tantivy": Case(
        "tantivy",
        """
import tantivy
schema = tantivy.SchemaBuilder()
schema.add_text_field("id", stored=True)
schema.add_text_field("text")
index = tantivy.Index(schema.build(), path=FOLDER)
writer = index.writer(50_000_000, 1)
writer.add_document(tantivy.Document(id="d1", text="the text of a user"))
writer.commit()
writer.wait_merging_threads()
""",
        ({}, {"target": "{folder}"}),
        {"target": "{folder}", "fields": "nothing"},
    ),
    "faiss": Case(
        "faiss",
        """
import faiss
index = faiss.IndexFlatIP(4)
index.add(VECTORS)
faiss.write_index(index, FOLDER + "/corpus.index")
open(FOLDER + "/ids.txt", "w").write("\\n".join(map(str, range(20))))
""",
        (_MODEL, {"target": "{folder}/corpus.index", "ids": "{folder}/ids.txt", **_MODEL}),
        {"target": "{folder}/ids.txt", **_MODEL},
    ),
}  # fmt: skip

KILLED = ("postgres-fts", "sqlite-fts", "lancedb", "chroma", "milvus", "tantivy")
"""The engines of `rounds`."""

LOOK_ALIKES = (
    *(
        "corpus.db",
        "documents",
        "documents.lance/data",
        "passages",
        "data/corpus.db",
        "copy/corpus.db",
        "chroma.sqlite3",
    ),
    *(
        "meta.json",
        "postmaster.pid",
        "PG_VERSION",
        ".s.PGSQL.5432",
        ".milvus.lock",
        "collection/documents/storage.sqlite",
    ),
    *("steelyard-file", "steelyard-sqlite-mine/data/corpus.db", "steelyard-postgres-mine/data/PG_VERSION"),
    # These have the form of our names, but a process of another machine, or more than our content.
    *("steelyard-lancedb-999999999-1-00000000-abcdefgh/data/documents.lance", "steelyard/vega-0.js"),
    *("steelyard-copy-{ended}-abcdefgh/data/corpus.db", "steelyard-copy-{ended}-abcdefgh/notes.txt"),
)


class Home:
    """The folders of a user, with look-alikes of everything that an engine uses."""

    def __init__(self, folder: Path) -> None:
        from steelyard.temporary import _machine

        self.folder = folder
        self.work, self.temporary, self.cache = (folder / name for name in ("work", "tmp", "cache"))
        for place in (self.work, self.temporary, self.cache):
            for name in LOOK_ALIKES:
                path = place / name.replace("{ended}", f"999999999-1-{_machine()}")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"precious {name}")
            (place / "steelyard-link").symlink_to(self.work)
        # Without qrels nothing is evaluated and no page is drawn, which would take most of the time of a bench.
        texts = {"corpus": [f"the text of document {n}" for n in range(20)], "queries": ["text", "document 2"]}
        (self.work / "dataset").mkdir()
        for name, lines in texts.items():
            rows = [json.dumps({"_id": f"{name[0]}{n}", "text": text}) for n, text in enumerate(lines)]
            (self.work / "dataset" / f"{name}.jsonl").write_text("\n".join(rows))

    def add_collections(self, engine: str) -> None:
        """Let the engine make collections of the user's, in a process of its own that ends."""
        target = self.work / engine
        target.mkdir()
        start = "import numpy as np\nVECTORS = np.random.default_rng(0).standard_normal((20, 4)).astype('float32')\n"
        names = "NAMES = ['documents', 'passages', 'corpus', 'steelyard']\n"
        code = f"{start}{names}FOLDER = {str(target)!r}\n{CASES[engine].make}"
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True)

    def state(self) -> dict[str, tuple[str, int, int]]:
        """Every file and folder with its digest, the time of its last change (of files) and its mode.

        Apart are the results of benches, what the package pgserver shares between its processes, and the script of
        the charts, which is bundled once.
        """
        state = {}
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if name.startswith(("results", "tmp/runtime-", "cache/steelyard/vega-1")):
                continue
            with suppress(FileNotFoundError):  # An engine at work may remove a file of its own meanwhile.
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                    state[name] = content, status.st_mtime_ns, status.st_mode
                else:
                    state[name] = str(path.readlink()) if path.is_symlink() else "", 0, status.st_mode
        return state

    def processes(self) -> list[str]:
        """The command lines of processes that work in the temporary folder."""
        commands = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(self.temporary) in command:
                    commands.append(command)
        return commands

    def settings(self, engine: str, given: Settings, address: str) -> Settings:
        """The settings of a bench."""
        folder = str(self.work / engine)
        return {
            key: value.replace("{folder}", folder).replace("{address}", address) if isinstance(value, str) else value
            for key, value in given.items()
        }

    def start(
        self, engine: str, rows: Sequence[Settings], result: str, wait: bool = False, kill: tuple[int, int] = (0, 0)
    ) -> subprocess.Popen[str]:
        """Start a bench. `wait`: it prints "ready" after the engine and waits. `kill`: a signal and an audit event."""
        given = {
            "engine": engine,
            "rows": rows,
            "wait": wait,
            "kill": kill,
            "output": str(self.folder / "results" / result),
        }
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "scripts.engines", json.dumps(given)],
            cwd=self.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "TMPDIR": str(self.temporary),
                "XDG_CACHE_HOME": str(self.cache),
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "OPENBLAS_NUM_THREADS": "1",
            },
        )  # fmt: skip

    def next_start(self) -> None:
        """A bench without an engine, which removes what killed ones left."""
        process = self.start("bm25", [{}], "next")
        _, errors = process.communicate()
        assert process.returncode == 0, errors


@contextmanager
def home() -> Iterator[Home]:
    """A home that other users can read, with a short path: a private PostgreSQL server of root needs both."""
    folder = Path("/tmp") / f"home-{os.urandom(4).hex()}"
    folder.mkdir(mode=0o755)
    try:
        yield Home(folder)
    finally:
        shutil.rmtree(folder)


def rounds(number: int, draw: random.Random, signals: Sequence[int] = SIGNALS) -> tuple[Counter[str], list[str]]:
    """Kill benches with all engines at the same time, each at a random moment, so many times with each signal.

    Half of the moments are audit events of Python, such as an import, a file that is opened or a process that is
    started; the others are times, which are also within the code of an engine.
    """
    tried: Counter[str] = Counter()
    problems: list[str] = []
    ended: list[bool] = []
    with home() as here:
        rows = {}
        for engine in KILLED:
            here.add_collections(engine)
            given = [row for row in CASES[engine].rows if "{address}" not in row.values()]
            rows[engine] = [here.settings(engine, row, "") for row in given]
        before = here.state()

        def until_end(engine: str) -> tuple[int, int]:
            output, errors = here.start(engine, rows[engine], f"{engine}-whole").communicate()
            assert output, errors
            first, last = map(int, output.split())
            return first, last

        with ThreadPoolExecutor(len(KILLED)) as workers:
            events = dict(zip(KILLED, workers.map(until_end, KILLED), strict=True))

        def killed(trial: tuple[str, int, int, float | None]) -> None:
            engine, signal_number, event, seconds = trial
            kill = (0, 0) if seconds is not None else (int(signal_number), event)
            process = here.start(engine, rows[engine], f"{engine}-{os.urandom(4).hex()}", kill=kill)
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.send_signal(signal_number)
            process.communicate()
            tried[f"{engine} {signal.Signals(signal_number).name}"] += 1
            ended.append(process.returncode == 0)

        for place in range(number):
            for signal_number in signals:
                trials = [
                    (
                        engine,
                        signal_number,
                        draw.randint(*events[engine]),
                        draw.uniform(0.2, 8) if (place + at) % 2 else None,
                    )
                    for at, engine in enumerate(KILLED)
                ]
                with ThreadPoolExecutor(len(KILLED)) as workers:
                    list(workers.map(killed, trials))
                here.next_start()
                after = here.state()
                what = f"{signal.Signals(signal_number).name} {place} {trials}"
                problems += [f"{what}: {name}" for name in sorted(set(before.items()) ^ set(after.items()))]
                problems += [f"{what}: {process}" for process in here.processes()]
                print(f"engines, {what}: {len(problems)} problems so far", file=sys.stderr, flush=True)
    print(f"benches that ended before they were killed: {sum(ended)}")
    return tried, problems


def _embed(texts: Sequence[str]) -> Any:
    """A model: texts of different words have different vectors."""
    import numpy as np

    return np.array([[len(text), text.count("e") + 1.0, text.count("2") - 1.0, 2.0] for text in texts])


def _child(given: dict[str, Any]) -> None:
    """Run one bench; print the audit events of its first temporary folder and of its end."""
    import contextlib

    import steelyard as sy
    from steelyard import user_code

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` leaves it ignored, and nothing would be ended by it.
    events, first, (number, last) = 0, 0, given["kill"]

    def count(event: str, values: tuple[object, ...]) -> None:
        nonlocal events, first
        events += 1
        if event == "tempfile.mkdtemp" and not first:
            first = events
        if events == last:
            os.kill(os.getpid(), number)

    def wait(query: str) -> list[str]:
        print("ready", flush=True)
        sys.stdin.read()
        return ["d1"]

    user_code.redirect_stdout = lambda stream: contextlib.nullcontext()  # type: ignore[attr-defined]
    sys.path.insert(0, os.getcwd())
    rows = [row | ({"model": _embed} if "model" in row else {}) for row in given["rows"]]
    retrievers: list[Any] = [{given["engine"]: row | {"name": f"row{n}"}} for n, row in enumerate(rows)]
    if given["wait"]:
        retrievers.append({"python": {"target": wait, "name": "wait"}})
    sys.addaudithook(count)
    result = sy.bench({"dataset": "dataset", "retrievers": retrievers, "measures": ["RR"]}, output=given["output"])
    print(first or 1, events)
    failures = {row.run: row.errors for row in result.rows if row.errors}
    if failures:
        sys.exit(f"failures: {failures}")


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
