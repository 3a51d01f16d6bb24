"""Judgments: the file, what counts of it, and how several judges are resolved."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.errors import InputError, PolicyError
from steelyard.io.files import compress
from steelyard.io.judgments import is_judgments_file, open_judgments
from steelyard.io.validate import validate_file
from steelyard.judgments import Judgment, Judgments, resolved
from steelyard.notes import note


def record(doc: str, grade: float | None, judge: str = "ann", **more: object) -> dict[str, object]:
    return {"query_id": "q1", "doc_id": doc, "grade": grade, "judge": judge, **more}


def written(path: Path, *records: dict[str, object], tail: bytes = b"") -> Path:
    path.write_bytes("".join(json.dumps(r) + "\n" for r in records).encode() + tail)
    return path


def grades(qrels: sy.Qrels) -> dict[str, float]:
    return dict(qrels.frame.select("doc_id", "grade").iter_rows())


def test_the_last_line_of_a_judge_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "j.jsonl", record("a", 1), record("a", 0, "bob"), record("a", 3))
    read = Judgments.read(path)
    assert read.judges == ["ann", "bob"]
    assert read.frame.select("judge", "grade").rows() == [("ann", 3), ("bob", 0)]
    assert grades(read.qrels("ann")) == {"a": 3}
    assert grades(read.qrels("last")) == {"a": 3}


def test_append_writes_one_line_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.touch()
    labels = Judgments.read(path)
    labels.append("q1", "a", 2, "ann", note="äöü", seconds=1.5)
    labels.append("q1", "b", None, "ann", spans=[{"start": 1, "end": 4}])
    first = json.loads(path.read_text("utf-8").splitlines()[0])
    assert list(first)[:5] == ["query_id", "doc_id", "grade", "judge", "at"]
    assert first["note"] == "äöü"
    again = Judgments.read(path)
    assert again.lines == labels.lines
    assert again.frame.equals(labels.frame)
    assert again.frame["grade"].to_list() == [2, None]
    assert again.frame["spans"].to_list() == [None, '[{"start": 1, "end": 4}]']
    assert grades(again.qrels()) == {"a": 2}
    assert repr(again) == "Judgments: 1 judge, 2 judgments of 2 documents, 1 without a grade"


@pytest.mark.parametrize("name", ["new.jsonl.gz", "old.jsonl.gz", "old.jsonl.zst", "packed", "plain.jsonl.GZ"])
def test_nothing_is_appended_to_a_compressed_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    before = json.dumps(record("a", 2)).encode() + b"\n"
    if not name.startswith("new"):
        path.write_bytes(before if name.startswith("plain") else compress(before, "zstd" if "zst" in name else "gzip"))
        before = path.read_bytes()
        with pytest.raises(InputError, match="decompress it first"):
            Judgments.read(path).append("q1", "b", 1, "ann")
        assert path.read_bytes() == before
    with pytest.raises(InputError, match="decompress it first"):
        open_judgments(path)
    assert path.exists() != name.startswith("new")


def test_an_output_does_not_replace_judgments(tmp_path: Path) -> None:
    path = written(tmp_path / "judgments.jsonl", record("a", 2))
    before = path.read_bytes()
    for output in (sy.pool({"bm25": {"q1": ["a"]}}), sy.Qrels({"q1": ["a"]})):
        with pytest.raises(InputError, match=r"judgments\.jsonl: holds judgments"):
            output.write(path)
    assert path.read_bytes() == before
    for _ in range(2):  # Qrels are replaced.
        sy.Qrels({"q1": ["a"]}).write(tmp_path / "qrels.jsonl")


def test_an_undo_withdraws_the_last_line_of_the_judge(tmp_path: Path) -> None:
    path = written(tmp_path / "j.jsonl", record("a", 1), record("a", 3), record("a", 2, "bob"))
    labels = Judgments.read(path)
    labels.undo("q1", "a", "ann")
    assert grades(labels.qrels("ann")) == {"a": 1}
    labels.undo("q1", "a", "ann")
    assert labels.judges == ["bob"]
    labels.undo("q1", "a", "ann")
    labels.append("q1", "a", 0, "ann")
    assert grades(Judgments.read(path).qrels("ann")) == {"a": 0}
    assert len(path.read_text().splitlines()) == 7


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_a_torn_last_line_is_ignored_and_noted(tmp_path: Path, cut: int) -> None:
    whole = json.dumps(record("bé", 2, spans=[{"start": 1}]), ensure_ascii=False).encode()
    path = written(tmp_path / "j.jsonl", record("a", 1), tail=whole[:cut])
    read = Judgments.read(path)
    assert [line.doc_id for line in read.lines] == ["a"]
    assert read.notes == (note("torn-lines", file="j.jsonl", lines=[2]),)
    read.append("q1", "c", 1, "ann")
    again = Judgments.read(path)
    assert [line.doc_id for line in again.lines] == ["a", "c"]
    assert again.notes == (note("torn-lines", file="j.jsonl", lines=[2]),)


def test_a_last_line_without_a_line_break_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "j.jsonl", record("a", 1), tail=json.dumps(record("b", 2)).encode())
    read = Judgments.read(path)
    assert len(read) == 2
    assert read.notes == ()
    read.append("q1", "c", 1, "ann")
    assert len(Judgments.read(path)) == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", "line 2: expected an object"),
        ('{"query_id": "q", "grade": 1}', "line 2: no doc_id"),
        ('{"query_id": "q", "doc_id": "d", "grade": "high"}', "grade is 'high', expected a number or null"),
        ('{"query_id": "q", "doc_id": "d", "grade": NaN}', "grade is nan"),
        ('{"query_id": "q", "doc_id": "d", "grade": 1, "judge": 7}', "judge is 7"),
        ('{"query_id": "q", "doc_id": "d", "grade": 1, "undo": "true"}', "undo is 'true', expected true"),
        ('{"query_id": "q", "doc_id": "d", "grade": 1, "undo": 1}', "undo is 1, expected true"),
        (
            '{"query_id": "q", "doc_id": "d", "grade": 1, "relevant_from": "2"}',
            "relevant_from is '2', expected a number",
        ),
        ("query doc 1", "line 2: not a JSON object"),
        ('{"query_id": "q" "doc_id"}', "line 2: not a JSON object"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(f"{json.dumps(record('a', 1))}\n{line}\n{json.dumps(record('b', 1))}\n")
    with pytest.raises(InputError, match="j.jsonl: 1 wrong line") as error:
        Judgments.read(path)
    assert message in str(error.value)


def test_rules(tmp_path: Path) -> None:
    votes = {"a": 0, "b": 3, "c": 3, "d": 1}
    labels = Judgments([record("x", grade, judge) for judge, grade in votes.items()] + [record("x", None, "e")])
    by_rule = {rule: grades(labels.qrels(rule))["x"] for rule in ("majority", "mean", "max", "min", "last")}
    assert by_rule == {"majority": 3, "mean": 1.75, "max": 3, "min": 0, "last": 1}
    resolved = "5 judges (a, b, c, d and e) resolved by majority: 1 document has more than one grade"
    assert resolved in map(str, labels.qrels().notes)
    with pytest.raises(PolicyError, match="majority"):
        labels.qrels("majorty")


def test_people_decide_where_a_model_judged_the_same_document() -> None:
    model = [{**record(doc, 0, name), "model": name} for doc in ("x", "y") for name in ("m1", "m2")]
    labels = Judgments([*model, record("x", 3, "ann")])
    assert grades(labels.qrels()) == {"x": 3, "y": 0}
    assert grades(labels.qrels("min"))["x"] == 0
    assert grades(labels.qrels("m1"))["x"] == 0
    assert "3 judges (m1, m2 and ann) resolved by majority: 2 documents have more than one grade" in map(
        str, labels.qrels().notes
    )
    assert grades(Judgments([*model, record("x", None, "ann")]).qrels())["x"] == 0, "no answer does not count"


def test_a_tied_majority_is_the_lower_median_of_the_most_frequent_grades() -> None:
    assert resolved([3, 0], "majority") == 0
    assert resolved([3, 0, 2], "majority") == 2
    assert resolved([0, 0, 2, 3, 3], "majority") == 0
    assert resolved([1, 1, 2, 2, 3, 3], "majority") == 2


def test_a_document_with_no_grade_is_not_judged() -> None:
    labels = Judgments([record("a", None), record("b", 1)])
    assert grades(labels.qrels()) == {"b": 1}
    assert len(labels) == 2


def test_from_frames_and_qrels() -> None:
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "grade": [2], "judge": ["ann"], "note": ["n"]})
    assert Judgments(frame).lines == [Judgment("q", "d", 2, "ann", more={"note": "n"})]
    qrels = sy.Qrels({"q1": [{"a": 3, "b": 1}, {"a": 2}]})
    assert {(x.doc_id, x.grade, x.judge) for x in Judgments(qrels, judge="nist").lines} == {
        ("a", 3, "nist"),
        ("b", 1, "nist"),
    }
    assert Judgments(Judgments(frame)).lines == Judgments(frame).lines
    assert Judgments({"q": {"d": 1}}).judges == ["judge"]


def test_paths_of_both_kinds(tmp_path: Path) -> None:
    own = written(tmp_path / "own.jsonl", record("a", 1))
    trec = tmp_path / "nist.txt"
    trec.write_text("q1 0 a 2\n")
    assert is_judgments_file(own)
    assert not is_judgments_file(trec)
    assert not is_judgments_file(tmp_path / "none")
    assert Judgments.of(own).judges == ["ann"]
    assert Judgments.of(trec).judges == ["nist"]
    with pytest.raises(InputError, match="there is no such file"):
        Judgments.read(tmp_path / "none")


def test_one_judge_of_several() -> None:
    labels = Judgments([record("a", 1), record("a", 2, "bob")])
    assert labels.by("bob").judges == ["bob"]
    with pytest.raises(PolicyError, match="bob"):
        labels.by("bop")


WRITER = """
import sys
from steelyard.io.judgments import is_judgments_file
from steelyard.io.validate import validate_file
from steelyard.judgments import Judgments
labels = Judgments.read(sys.argv[1])
for i in range(10**9):
    labels.append("q", f"d{i}", 1, "ann", note="x" * 5000)
    print(i, flush=True)
"""


def test_every_line_that_was_written_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.touch()
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while writer.stdout.readline() != "50\n":
            pass
        writer.kill()
        acknowledged = 50 + len(writer.stdout.readlines())
    documents = [line.doc_id for line in Judgments.read(path).lines]
    assert documents[: acknowledged + 1] == [f"d{i}" for i in range(acknowledged + 1)]


def test_convert_and_validate_know_judgments_files(tmp_path):
    file = tmp_path / "judgments.jsonl"
    lines = [("ann", 2), ("bob", 0), ("cleo", 2)]
    file.write_text(
        "".join(
            json.dumps({"query_id": "q1", "doc_id": "a", "grade": grade, "judge": judge, "at": "2024"}) + "\n"
            for judge, grade in lines
        )
        + '{"query_id": "q1", "doc'
    )
    assert sy.Qrels.read(file).frame.select("doc_id", "grade").rows() == [("a", 2)]
    assert sy.Qrels.read(file, format="judgments") == sy.Qrels.read(file)
    made = sy.convert(str(file), str(tmp_path / "qrels.trec"))
    assert (made.kind, made.before, made.after, made.rows) == ("qrels", "judgments", "trec-qrels", 1)
    assert (tmp_path / "qrels.trec").read_text() == "q1 0 a 2\n"
    checked = validate_file(file)
    assert (checked.kind, checked.format, checked.ok) == ("qrels", "judgments", True)
    texts = [finding.text for finding in checked.findings]
    assert any("3 judges (ann, bob and cleo) resolved by majority" in text for text in texts)
    assert any("not written to the end" in text for text in texts)


def _export(path: Path, *lines: tuple[str, float | None, str, bool]) -> bytes:
    records = [
        {"query_id": "q", "doc_id": doc, "grade": grade, "judge": "ann", "at": f"2026-01-01T00:00:{at}Z"}
        | ({"undo": True} if undo else {})
        for doc, grade, at, undo in lines
    ]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_of_two_exports_of_one_judge_the_later_judgment_counts(tmp_path: Path) -> None:
    """Whatever the order in which they are joined, and also for lines that both have."""
    first = _export(tmp_path, ("a", 1, "01", False), ("b", 2, "02", False), ("c", 3, "03", False))
    second = _export(
        tmp_path, ("a", 1, "01", False), ("b", 0, "05", False), ("c", 3, "03", False), ("c", None, "06", True)
    )
    for order in ((first, second), (second, first)):
        (tmp_path / "j.jsonl").write_bytes(b"".join(order))
        labels = Judgments.read(tmp_path / "j.jsonl")
        assert {line.doc_id: line.grade for line in labels.current} == {"a": 1, "b": 0}
        (found,) = (note for note in labels.notes if note.code == "exports-joined")
        assert (found["judges"], found["conflicts"]) == (("ann",), 1)
    (tmp_path / "j.jsonl").write_bytes(first)
    assert Judgments.read(tmp_path / "j.jsonl").notes == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [("12:00:05Z", "12:00:00Z"), ("10:00:00+02:00", "09:00:00Z"), ("12:00:05Z", "12:00:05.500Z"), ("?", "12:00:00")],
)
@pytest.mark.parametrize("undo", [False, True])
def test_the_last_line_counts_whatever_the_clock_says(tmp_path: Path, first: str, second: str, undo: bool) -> None:
    path = tmp_path / "j.jsonl"
    path.touch()
    live = Judgments()
    live.path = path
    for place, (time, grade) in enumerate([(first, 0.0), (second, 3.0), (first, 1.0), (first, 2.0)]):
        for doc in ("other", "d"):
            live.append("q", doc, grade, "ann", at=f"2026-01-01T{time}", undo=undo and place == 1)
        again = Judgments.read(path)
        assert again.current == live.current
        assert again.notes == ()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_deeply_nested_json_is_no_judgments_file(tmp_path: Path, text: str) -> None:
    from steelyard.cli import run as steelyard

    (tmp_path / "deep.json").write_text(text)
    (tmp_path / "j.jsonl").write_bytes(_export(tmp_path, ("a", 1, "01", False)))
    assert steelyard(["agreement", f"a={tmp_path / 'deep.json'}", f"b={tmp_path / 'j.jsonl'}"]) == 2


def test_missing_values_of_a_pandas_frame_are_no_grade_and_no_field():
    pandas = import_peer("pandas")
    nan = float("nan")
    columns = {
        "query_id": ["q"] * 2,
        "doc_id": ["a", "b"],
        "grade": [1.0, nan],
        "judge": ["x"] * 2,
        "seconds": [2, nan],
    }
    lines = Judgments(pandas.DataFrame(columns)).lines
    assert [(line.grade, line.more) for line in lines] == [(1.0, {"seconds": 2.0}), (None, {})]


@pytest.mark.parametrize("form", ["pandas", "pyarrow", "pyarrow batch", "polars", "lazy"])
def test_frames_keep_their_judges(form):
    for package in {"pandas": ("pandas", "pyarrow"), "polars": (), "lazy": ()}.get(form, ("pyarrow",)):
        import_peer(package)
    frame = pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["d"] * 2, "grade": [1, None], "judge": ["me", "you"]})
    made = {
        "pandas": frame.to_pandas,
        "pyarrow": frame.to_arrow,
        "pyarrow batch": lambda: frame.to_arrow().to_batches()[0],
        "polars": frame.clone,
        "lazy": frame.lazy,
    }
    assert [(line.judge, line.grade) for line in Judgments(made[form]()).lines] == [("me", 1), ("you", None)]
