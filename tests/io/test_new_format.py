"""A new format is one declaration: it is detected, read, written, validated, converted and listed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.cli import run as cli
from steelyard.errors import InputError
from steelyard.io import Detected, Format, formats, register_format, sniff, validate_file
from steelyard.io.formats import EvidenceReader, Layout, Shape
from steelyard.io.text import Source

HEADER = b"!arrows"


def detect(shape: Shape) -> Detected | None:
    return Detected("run", "arrows", "run") if shape.source.start.startswith(HEADER) else None


def read_run(source: Source, columns: Mapping[str, str]) -> sy.Run:
    lines = [line.split(" <- ") for line in source.text.split("\n")[1:] if line]
    return sy.Run({query: documents.split(",") for query, documents in lines}, name="arrows")


def run_bytes(run: sy.Run) -> bytes:
    lists: dict[str, list[str]] = {query: [] for query in run.queries}
    for query, doc in run.frame.select("query_id", "doc_id").iter_rows():
        lists[query].append(doc)
    return HEADER + b"\n" + "".join(f"{query} <- {','.join(docs)}\n" for query, docs in lists.items()).encode()


def read_dataset(path: Path) -> sy.Dataset:
    return sy.Dataset.of({"d1": path.read_text()}, {"q1": "why"}, {"q1": ["d1"]}, name="arrows")


ARROWS = Format(
    name="arrows",
    description="query <- documents",
    detect=detect,
    reads={"run": read_run},
    writes={"run": run_bytes},
    suffixes={"run": (".arrows",)},
    scores="dropped",
    dataset=Layout(read_dataset, lambda path: path.suffix == ".quiver"),
    evidence=EvidenceReader(lambda rows: sy.Evidence({row["q"]: [{"fact": row["hit"]}] for row in rows}), ("hit",)),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_registered", [])
    register_format(ARROWS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(HEADER + b"\nq1 <- d1,d2\nq2 <- d3\n")
    return path


RUN = sy.Run({"q1": ["d1", "d2"], "q2": ["d3"]})


def test_it_is_detected_read_and_written(file: Path, tmp_path: Path) -> None:
    assert sniff(file) == Detected("run", "arrows", "run")
    assert sy.Run.read(file) == sy.Run.read(file, format="arrows") == RUN
    RUN.write(tmp_path / "again.arrows")
    assert (tmp_path / "again.arrows").read_bytes() == file.read_bytes()
    with pytest.raises(InputError, match=r"this file holds a run \(format arrows\); expected qrels"):
        sy.Qrels.read(file)
    with pytest.raises(InputError, match="format 'arrows' cannot read qrels; these can: "):
        sy.Qrels.read(file, format="arrows")


def test_it_is_validated_converted_and_listed(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(validate_file(file)).startswith(f"{file}: a run, format arrows\n  run 'arrows': 2 queries, 3 documents")
    assert cli(["validate", str(file)]) == 0
    assert cli(["convert", str(file), str(tmp_path / "run.trec")]) == 0
    assert sy.Run.read(tmp_path / "run.trec").frame["doc_id"].to_list() == ["d1", "d2", "d3"]
    back = sy.convert(tmp_path / "run.trec", tmp_path / "run.arrows")
    assert (back.before, back.after, [note.code for note in back.notes]) == ("trec-run", "arrows", ["scores-dropped"])
    assert (tmp_path / "run.arrows").read_bytes() == file.read_bytes()
    assert ARROWS in sy.list_formats().values()
    capsys.readouterr()


def test_its_datasets_and_its_evidence_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.quiver").write_text("because")
    assert sy.Dataset.read(tmp_path / "a.quiver").corpus["d1"] == "because"
    (tmp_path / "evidence.csv").write_text("q,hit\nq1,a fact\n")
    assert sy.Evidence.read(tmp_path / "evidence.csv") == sy.Evidence({"q1": [{"fact": "a fact"}]})


def test_a_name_is_declared_once() -> None:
    with pytest.raises(InputError, match="there is already a format 'arrows'"):
        register_format(ARROWS)


@pytest.mark.parametrize("end", ["\u2028", "\u0085", "\x0c", "\x1c"], ids=ascii)
def test_only_a_line_feed_ends_a_line(end: str, tmp_path: Path) -> None:
    """These characters end a line for str.splitlines, and are part of a text for every reader here."""
    doc = f"a{end}b"
    for name in ("run.csv", "run.json", "run.jsonl", "run.parquet"):
        sy.Run({"q1": [doc]}).write(tmp_path / name)
        assert sy.Run.read(tmp_path / name).table["doc_id"].to_list() == [doc], name
    dataset = sy.Dataset.of({"d1": doc}, {"q1": doc}, {"q1": ["d1"]})
    dataset.write(tmp_path / "dataset")
    again = sy.Dataset.read(tmp_path / "dataset")
    assert (again.corpus["d1"], again.queries["q1"]) == (doc, doc)
    judgments = sy.Judgments()
    judgments.path = tmp_path / "judgments.jsonl"
    judgments.append("q1", doc, 1, "ann", note=doc)
    judgments.append("q1", "d2", 0, "ann")
    assert [line.doc_id for line in sy.Judgments.read(judgments.path).lines] == [doc, "d2"]
    sy.Evidence({"q1": [{"fact": doc}]}).write(tmp_path / "evidence.jsonl")
    assert sy.Evidence.read(tmp_path / "evidence.jsonl").targets["q1"][0][0].fact == doc


def test_no_reader_splits_lines_by_splitlines() -> None:
    root = Path(sy.__file__).parent
    files = [
        *root.glob("*.py"),
        *(path for part in ("io", "datasets", "evidence") for path in (root / part).glob("*.py")),
    ]
    assert [path.name for path in files if ".splitlines(" in path.read_text("utf-8")] == []
