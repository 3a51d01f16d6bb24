"""A result folder read back: the same page, or an error that states what is wrong with it."""

from __future__ import annotations

import json
import shutil

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.benchmark import load_result
from steelyard.cli import run as command
from steelyard.errors import InputError
from steelyard.notes import sentence

import_peer("altair")

CORPUS = {f"d{i}": {"title": f"Title {i}", "text": f"alpha text number {i}"} for i in range(8)}
QUERIES = {f"q{i}": {"text": f"alpha {i}", "kind": "ab"[i % 2]} for i in range(6)}
QRELS = {f"q{i}": {f"d{i}": 2, f"d{(i + 1) % 8}": -1} for i in range(6)}


class Shifted:
    """The right answers, shifted; an empty list for one query, an error for another."""

    def __init__(self, label, shift, fails=()):
        self.label, self.shift, self.fails = label, shift, fails

    def index(self, corpus):
        self.ids = list(corpus)
        return self

    def retrieve(self, queries, k=10):
        found = []
        for query in queries:
            number = int(query.split()[1])
            if number in self.fails:
                raise ValueError(f"cannot answer {number}")
            order = self.ids[(number + self.shift) % 8 :] + self.ids[: (number + self.shift) % 8]
            found.append([] if number == 5 else [(doc, 1.0 / place) for place, doc in enumerate(order[:k], 1)])
        return found

    def settings(self):
        return {"shift": self.shift}

    def size_in_bytes(self):
        return 3


def bench(folder, **more):
    given = {
        "dataset": sy.Dataset.of(CORPUS, QUERIES, QRELS, name="tiny"),
        "retrievers": [Shifted("a/b", 0), Shifted("a_b", 6, fails=(2,)), Shifted("far", 4)],
        "measures": ["nDCG@5", "RR", "Confusion@3", "Latency"],
        "composite": {"nDCG@5": 0.5, "RR": 0.5},
        "baseline": "far",
        "by": "kind",
        "depth": 8,
    }
    return sy.bench({**given, **more}, output=folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return bench(tmp_path_factory.mktemp("made") / "result")


@pytest.fixture
def folder(made, tmp_path):
    copied = tmp_path / "result"
    shutil.copytree(made.folder, copied)
    return copied


def test_the_comparison_is_read_back(made):
    again = load_result(made.folder)
    assert again.comparison.to_dict() == made.comparison.to_dict()
    assert again.notes == ()
    assert list(again.runs) == ["a/b", "a_b", "far"], "two names that make one file name stay apart"
    assert again.queries == {query: row["text"] for query, row in QUERIES.items()}
    assert again.documents["d3"] == ("Title 3", "alpha text number 3")


def test_results_show_their_comparison_and_folder(made):
    read = load_result(made.folder)
    notes = map(sentence, made.notes)
    assert repr(made) == "\n".join([repr(made.comparison), *notes, f"The result is in {made.folder}."])
    assert repr(read) == f"{read.comparison!r}\nRead from {made.folder}."
    assert made._repr_html_() == read._repr_html_() == made.comparison.to_html()


def test_the_page_written_again_has_the_same_bytes(made, tmp_path):
    load_result(made.folder).to_html(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (made.folder / "report.html").read_bytes()


def test_measures_that_read_texts_are_computed_again(tmp_path):
    measured = bench(tmp_path / "near", measures=["R(budget=12)@5", "RR"], composite=None)
    assert load_result(tmp_path / "near").comparison.to_dict() == measured.comparison.to_dict()


def test_cutoffs_and_a_dialect(tmp_path):
    measured = bench(tmp_path / "at", measures=[], dialect="leaderboard", at=[1, 3], composite="default")
    again = load_result(tmp_path / "at")
    assert again.comparison.to_dict() == measured.comparison.to_dict()
    page = (tmp_path / "at" / "report.html").read_text()
    assert page.count("<tbody>") >= 2
    assert "Average nDCG" in page


@pytest.mark.slow
def test_the_command_writes_the_page_and_the_charts(made, tmp_path, capsys):
    page, charts = tmp_path / "page.html", tmp_path / "charts"
    assert command(["report", str(made.folder), "-o", str(page), "--charts", str(charts)]) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert "Report: " in capsys.readouterr().err
    names = {path.name for path in charts.iterdir()}
    assert {"means.png", "means.svg", "cutoffs.png", "p-values.svg", "agreement.png", "slices.svg"} <= names
    assert (charts / "means.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (charts / "means.svg").read_text()


def test_a_path_to_the_record_is_accepted(made):
    assert load_result(made.folder / "result.json").path == made.folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("result.json", "stopped before the end. Run the bench again"),
        ("qrels.parquet", "has no qrels.parquet: the folder is incomplete"),
        ("runs/far.parquet", "is incomplete: 1 of its 3 runs is missing"),
    ],
)
def test_an_incomplete_folder_is_refused(folder, capsys, name, said):
    (folder / name).unlink()
    assert command(["report", str(folder), "-o", str(folder / "new.html")]) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "new.html").exists()


def test_what_is_not_a_result_folder(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_result(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is not a folder"):
        load_result(tmp_path / "file")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"steelyard": "0.1.0"}', "\x00"])
def test_a_broken_record_is_refused(folder, text):
    (folder / "result.json").write_text(text)
    with pytest.raises(InputError, match="[Rr]un the bench again"):
        load_result(folder)


def test_a_newer_version_is_refused(folder):
    record = json.loads((folder / "result.json").read_text())
    record["steelyard"] = "99.1.0"
    (folder / "result.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"written by Steelyard 99.1.0, which is newer.*pip install --upgrade"):
        load_result(folder)


def test_without_texts_the_page_states_what_is_absent(folder):
    (folder / "documents.parquet").unlink()
    (folder / "queries.parquet").write_bytes(b"PAR1 broken")
    record = json.loads((folder / "result.json").read_text())
    record["settings"]["by"] = None
    (folder / "result.json").write_text(json.dumps(record))
    read = load_result(folder)
    assert len(read.notes) == 2
    read.to_html(folder / "new.html")
    page = (folder / "new.html").read_text()
    assert "no readable documents.parquet: documents are shown by their ids" in page
    assert "no readable queries.parquet: queries are shown by their ids" in page
    assert "alpha text number" not in page


def test_without_its_column_a_result_has_no_slices(folder):
    (folder / "queries.parquet").unlink()
    read = load_result(folder)
    assert any("'kind' of the queries is not in the folder" in str(note) for note in read.notes)
    assert read.comparison.slices == ()


def test_numbers_that_changed_are_reported(folder):
    record = json.loads((folder / "result.json").read_text())
    record["comparison"]["leaderboard"][0]["RR"] += 0.1
    (folder / "result.json").write_text(json.dumps(record))
    assert any("1 mean differs" in str(note) and "RR of" in str(note) for note in load_result(folder).notes)


def test_errors_and_empty_lists_are_in_the_page(made):
    page = (made.folder / "report.html").read_text()
    assert "ValueError: cannot answer 2" in page
    assert load_result(made.folder).comparison.coverage["a_b"].missing == 1
