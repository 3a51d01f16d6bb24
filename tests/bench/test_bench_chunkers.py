"""Chunkers in a bench: every retriever on every chunking, evaluated with the qrels of its own chunks."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from benchmarks.chunkers import MEASURES, compared

import steelyard as sy
from needs import SHARED, needs_shared
from steelyard.benchmark.folder import load_result
from steelyard.chunking import chunk_documents, chunker
from steelyard.errors import InputError
from steelyard.retrievers import BM25

DATA = SHARED / "chunk-spans"

TEXTS = {
    "a": "Gold is weighed here. A balance is never wrong. Boats are for rivers and lakes.",
    "b": "Stones sink in water. Boats float on water. A balance weighs gold and lead.",
}
QUERIES = {"q1": "what is weighed", "q2": "boats on water", "q3": "nothing at all"}
EVIDENCE = {
    "q1": [{"doc_id": "a", "start": 0, "end": 21}, {"fact": "weighs gold"}],
    "q2": [{"fact": "Boats float"}],
    "q3": None,
}
CHUNKERS = [{"fixed": {"tokens": 5, "overlap": 2}}, {"sentence": {"tokens": 6}}, "whole"]


@pytest.fixture
def dataset() -> sy.Dataset:
    return sy.Dataset.of(TEXTS, QUERIES, {"q1": ["a", "b"], "q2": ["b"], "q3": []}, name="tiny")


def bench(dataset: sy.Dataset, folder: Path, **more: object) -> sy.BenchResult:
    given = {
        "dataset": dataset,
        "retrievers": ["bm25-okapi", {"random": {"seed": 1}}],
        "chunkers": CHUNKERS,
        "evidence": sy.Evidence(EVIDENCE),
        "measures": ["nDCG@3", "R(per=target)@3", "R@3", "R(budget=12)"],
        "depth": 5,
        "warmup": 0,
        "no_relevant": "skip",
        **more,
    }
    return sy.bench(given, output=folder)


def test_every_retriever_on_every_chunking(dataset: sy.Dataset, tmp_path: Path) -> None:
    result = bench(dataset, tmp_path)
    labels = [f"{r} on {c}" for c in ("fixed-5/2", "sentence-6", "whole") for r in ("bm25-okapi", "random")]
    assert list(result.runs) == labels
    assert sorted(result.comparison.leaderboard["run"].to_list()) == sorted(labels)
    for label in labels:
        chunks = chunk_documents(
            TEXTS, chunker(CHUNKERS[("fixed", "sentence", "whole").index(label.split(" on ")[1].split("-")[0])])
        )
        own = sy.Evidence(EVIDENCE).judge(chunks)
        prefix = label.split(" on ")[1] + ":"
        run = {q: [d.removeprefix(prefix) for d, _ in result.runs[label].mapping[q]] for q in QUERIES}  # type: ignore[index]
        texts = {chunk.chunk_id: chunk.text for chunk in chunks}
        alone = sy.evaluate(
            own, sy.Run(run, texts=texts), ["nDCG@3", "R(per=target)@3", "R@3", "R(budget=12)"], no_relevant="skip"
        )
        row = result.comparison.leaderboard.filter(run=label).row(0, named=True)
        assert {key: row[key] for key in alone.means} == pytest.approx(alone.means, abs=1e-12)
    whole = result.comparison.leaderboard.filter(run="bm25-okapi on whole").row(0, named=True)
    assert whole["R(per=target)@3"] == 1.0


def test_table_of_chunkings(dataset: sy.Dataset, tmp_path: Path) -> None:
    result = bench(dataset, tmp_path)
    table = result.chunk_table
    assert table is not None
    assert table.columns == ["chunking", "chunks", "mean tokens"]
    sizes = {str(row[0]): tuple(row[1:]) for row in table.rows}
    assert list(sizes) == ["fixed-5/2", "sentence-6", "whole"]
    assert sizes["whole"] == (2, 14.5)
    assert sizes["sentence-6"][0] == 6
    assert "## Chunkings" in (tmp_path / "leaderboard.md").read_text("utf-8")


def test_folder_gives_the_same_comparison(dataset: sy.Dataset, tmp_path: Path) -> None:
    result = bench(dataset, tmp_path, baseline="random on whole")
    again = load_result(tmp_path)
    assert again.comparison.leaderboard.equals(result.comparison.leaderboard, null_equal=True)
    assert not [note for note in again.notes if note.code == "result-means-differ"]


def test_notes_of_an_older_folder_are_read_as_text(dataset: sy.Dataset, tmp_path: Path) -> None:
    result = bench(dataset, tmp_path)
    record = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert [each["code"] for each in record["chunk_notes"]] == [note.code for note in result.chunk_notes]
    record["chunk_notes"] = ["A note of an older version."]
    (tmp_path / "result.json").write_text(json.dumps(record), "utf-8")
    first = load_result(tmp_path).comparison.notes[0]
    assert (first.code, str(first)) == ("text", "A note of an older version.")


def test_answers_are_cached_by_chunking(dataset: sy.Dataset, tmp_path: Path) -> None:
    bench(dataset, tmp_path)
    more = bench(dataset, tmp_path, chunkers=[*CHUNKERS, {"recursive": {"tokens": 6}}])
    assert [row.cached for row in more.rows] == [True] * 6 + [False] * 2


def test_without_evidence_every_chunk_of_a_relevant_document_is_relevant(dataset: sy.Dataset, tmp_path: Path) -> None:
    result = bench(dataset, tmp_path, evidence=None, chunkers=["whole"], measures=["R@2"])
    assert result.comparison.leaderboard.filter(run="bm25-okapi on whole")["R@2"].to_list() == [1.0]


def test_evidence_file_next_to_bench_yaml(dataset: sy.Dataset, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text(json.dumps(EVIDENCE), encoding="utf-8")
    for name, rows in (("corpus", TEXTS), ("queries", QUERIES)):
        lines = (json.dumps({"_id": key, "text": text}) + "\n" for key, text in rows.items())
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n", encoding="utf-8")
    (tmp_path / "bench.yaml").write_text(
        "dataset: .\nevidence: key.json\nchunkers: [fixed: {tokens: 5, overlap: 2}, sentence, recursive]\n"
        "retrievers: [bm25-okapi]\nmeasures: [R(per=target)@3]\nbaseline: bm25-okapi on recursive-200\n",
        encoding="utf-8",
    )
    result = sy.bench(tmp_path / "bench.yaml")
    assert len(result.comparison.leaderboard) == 3


def written(folder: Path, key: object, **more: object) -> Path:
    """A bench next to a dataset that has no qrels."""
    data = folder / "data"
    data.mkdir()
    for name, rows in (("corpus", TEXTS), ("queries", QUERIES)):
        lines = (json.dumps({"_id": key, "text": text}) + "\n" for key, text in rows.items())
        (data / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "key.json").write_text(json.dumps(key), encoding="utf-8")
    made = {
        "dataset": "data",
        "evidence": "key.json",
        "chunkers": CHUNKERS,
        "retrievers": ["bm25-okapi", "bm25-plus"],
        "measures": ["R(per=target)@2"],
        "warmup": 0,
        **more,
    }
    (folder / "bench.yaml").write_text(json.dumps(made), encoding="utf-8")
    return folder / "bench.yaml"


def test_with_evidence_the_dataset_needs_no_qrels(tmp_path: Path) -> None:
    result = sy.bench(written(tmp_path, EVIDENCE))
    assert len(result.comparison.leaderboard) == 6
    text = result.comparison.to_text()
    assert len(re.findall(r"^On fixed-5/2: .*\d+ of \d+ chunks overlap an earlier one", text, re.MULTILINE)) == 1
    assert text.count("chunks overlap an earlier one") == 1
    assert text.count("favours large chunks") == 1
    again = load_result(result.folder).comparison
    assert (again.notes, again.to_text()) == (result.comparison.notes, text)


def test_without_evidence_chunkers_need_qrels(tmp_path: Path) -> None:
    path = written(tmp_path, EVIDENCE, evidence=None)
    with pytest.raises(InputError, match="there are no qrels: .*None are needed with `evidence` in bench.yaml"):
        sy.bench(path)


def test_chunks_of_a_retriever_are_judged_by_the_documents_of_the_result(tmp_path: Path) -> None:
    chunks = [{"id": f"{name}#{part}", "text": TEXTS[name][40 * part :][:40]} for name in TEXTS for part in (0, 1)]
    retrievers = {"own": lambda query, k: chunks[:k]}
    result = sy.bench({"queries": QUERIES, "retrievers": retrievers, "warmup": 0}, output=tmp_path)
    qrels = sy.Evidence({"q1": [{"fact": "Gold is weighed here"}]}).judge(result.folder / "documents.parquet")
    assert qrels.frame["doc_id"].to_list() == ["a#0"]


def test_evidence_with_other_queries_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="first queries are 'q1', 'q2', 'q3', those of the qrels 'z'"):
        sy.bench(written(tmp_path, {"z": EVIDENCE["q2"]}))


def test_spans_out_of_range_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is out of range: the document has 79"):
        sy.bench(written(tmp_path, {"q1": [{"doc_id": "a", "start": 70, "end": 99}]}))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"chunkers": ["fixt"]}, "unknown chunker 'fixt'.*Did you mean fixed"),
        ({"chunkers": ["whole", "whole"]}, "two chunkers are called 'whole'"),
        ({"chunkers": []}, "evidence gives qrels for chunks.*`steelyard evidence` on documents.parquet"),
        ({"by": "complexity"}, "complexity counts relevant documents"),
        ({"baseline": "bm25-okapi"}, "bm25-okapi on fixed-5/2"),
        ({"overlap": "most"}, "overlap"),
    ],
)
def test_problems_of_chunkers(dataset: sy.Dataset, tmp_path: Path, more: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        bench(dataset, tmp_path, **more)


@needs_shared
@pytest.mark.slow
def test_real_spans_three_chunkings_two_retrievers(tmp_path: Path) -> None:
    key = sy.Evidence.read(DATA / "questions_df.csv")
    with (DATA / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        questions = {str(number): row["question"] for number, row in enumerate(csv.DictReader(file))}
    texts = {path.stem: path.read_bytes().decode() for path in sorted((DATA / "corpora").glob("*.md"))}
    judged = {query: [next(iter(key.targets[query]))[0].doc_id] for query in key.queries}
    dataset = sy.Dataset.of(texts, questions, judged, name="chunk-spans")
    given = {
        "dataset": dataset,
        "evidence": key,
        "chunkers": [{"fixed": {"tokens": 200, "overlap": 20}}, "sentence", "recursive", "whole"],
        "retrievers": ["bm25-okapi", {"random": {"seed": 7}}],
        "measures": ["R(per=target)@5", "nDCG@10", "RR@10", "R(per=target, budget=1000)"],
        "depth": 20,
        "warmup": 0,
        "baseline": "bm25-okapi on recursive-200",
    }
    result = sy.bench(given, output=tmp_path)
    board = {row["run"]: row for row in result.comparison.leaderboard.iter_rows(named=True)}
    assert len(board) == 8
    assert board["bm25-okapi on whole"]["R(per=target)@5"] == 1.0
    for chunking in ("fixed-200/20", "sentence-100", "recursive-200"):
        assert board[f"bm25-okapi on {chunking}"]["R(per=target)@5"] > 0.6
        assert board[f"random on {chunking}"]["R(per=target)@5"] < 0.1
    assert BM25(variant="okapi").label in next(iter(board))


def test_page_has_the_lists_of_every_chunking_with_their_ranks(dataset: sy.Dataset, tmp_path: Path) -> None:
    from steelyard.comparison.failures import PARTLY, run_failures
    from steelyard.report.page.queries import _Judgments, lists_of

    result = bench(dataset, tmp_path, chunkers=CHUNKERS[1:])
    subject = load_result(tmp_path).subject()
    looks = run_failures(result.comparison)
    listed = lists_of(subject, looks, range(3), {0: 0, 1: 1, 2: 2}, None)
    assert listed.queries == (0, 1, 2)
    runs = result.comparison.runs
    assert subject.comparison.source is not None
    judged = _Judgments(subject.comparison.source.qrels, looks)
    for doc, *ranks in zip(judged.doc_ids, *judged.ranks, strict=True):
        for name, rank in zip(runs, ranks, strict=True):
            assert (rank is None) == (not doc.startswith(name.split(" on ")[1] + ":"))
    whole = runs.index("bm25-okapi on whole")
    assert not (looks[whole].failures & PARTLY).any(), "chunks of another chunking are not counted as missed"


def test_a_verdict_that_depends_on_the_overlap_rule_is_undecided(tmp_path: Path) -> None:
    # Every query's passage is 60 words; small chunks contain a part of it, large ones all of it and one other half.
    words = [f"w{number}" for number in range(120)]
    texts = {
        f"d{n}": " ".join(f"t{n} {word}" if at % 30 == 0 else word for at, word in enumerate(words)) for n in range(12)
    }
    start = {doc: text.index("w30") for doc, text in texts.items()}
    key = {
        f"q{n}": [{"doc_id": f"d{n}", "start": start[f"d{n}"], "end": texts[f"d{n}"].index("w90")}] for n in range(12)
    }
    dataset = sy.Dataset.of(texts, {f"q{n}": f"t{n}" for n in range(12)}, {f"q{n}": [f"d{n}"] for n in range(12)})
    given = {
        "dataset": dataset,
        "evidence": sy.Evidence(key),
        "chunkers": [{"fixed": {"tokens": 31}}, "whole"],
        "retrievers": ["bm25-okapi"],
        "measures": ["P@4", "SpanR@4"],
        "warmup": 0,
    }
    result = sy.bench({**given}, output=tmp_path / "any")
    pair, spans = result.comparison.tested_pairs
    assert (pair.measure, pair.verdict, pair.stars) == ("P@4", "undecided", "")
    assert "depends on how much of a passage a chunk must contain (any +" in pair.sentence
    numbers = dict(re.findall(r"(any|majority|whole) ([-+]\d\.\d{4})", pair.reason))
    for rule in ("any", "majority", "whole"):
        own = sy.bench({**given, "overlap": rule}, output=tmp_path / rule).comparison
        means = {row.run: row.means["P@4"] for row in own.leaderboard_rows}
        assert f"{means[pair.run] - means[pair.baseline]:+.4f}" == numbers[rule]
        assert {each.verdict for each in own.tested_pairs if each.measure == "P@4"} == {"undecided"}
    assert spans.verdict != "undecided", "SpanR needs no rule"
    assert "undecided: depends on how much of a passage a chunk must contain" in result.comparison.verdict
    assert "Next: use" not in result.comparison.summary()
    assert any(each.code == "depends-on-overlap" for each in result.comparison.notes)
    again = load_result(tmp_path / "any").comparison
    assert again.tested_pairs == result.comparison.tested_pairs
    assert again.verdict == result.comparison.verdict
    assert "depends on how much of a passage" in (tmp_path / "any" / "report.html").read_text("utf-8")


def test_a_folder_without_spans_has_no_files_of_them(dataset: sy.Dataset, tmp_path: Path) -> None:
    files = {"ranges.parquet", "overlaps.parquet", "overlap_scores.parquet"}
    bench(dataset, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= files
    bench(dataset, tmp_path, evidence=sy.Evidence({"q1": [{"fact": "weighs gold"}]}))
    assert not {path.name for path in tmp_path.iterdir()} & files


def halves(text: str) -> list[str]:
    """A chunker of one's own: two chunks that share a word."""
    words = text.split()
    middle = len(words) // 2
    return [" ".join(words[: middle + 1]), " ".join(words[middle:])]


def test_a_chunker_of_ones_own(dataset: sy.Dataset, tmp_path: Path) -> None:
    (tmp_path / "my_chunks.py").write_text(
        "def cut(text):\n    middle = text.index(' ', len(text) // 2)\n    return [(0, middle), (middle, len(text))]\n"
    )
    made = {
        "dataset": dataset,
        "evidence": sy.Evidence(EVIDENCE),
        "retrievers": ["bm25-okapi"],
        "measures": ["R(per=target)@3"],
        "warmup": 0,
    }
    yaml = {**made, "chunkers": [{"python": "my_chunks:cut", "name": "mine"}, "whole"]}
    path = written(tmp_path, EVIDENCE, **{key: yaml[key] for key in ("chunkers", "retrievers", "measures")})
    sizes = {str(row[0]): row[1] for row in sy.bench(path).chunk_table.rows}  # type: ignore[union-attr]
    assert sizes == {"mine": 4, "whole": 2}
    result = sy.bench({**made, "chunkers": [halves]}, output=tmp_path / "halves")
    chunks = result.dataset.corpus.texts
    assert list(chunks) == ["halves:a#1", "halves:a#2", "halves:b#1", "halves:b#2"]
    assert chunks["halves:a#2"] == "never wrong. Boats are for rivers and lakes."
    with pytest.raises(sy.SteelyardError, match="<lambda>: chunk 1 is 'GOLD IS .* which is not a part of the text"):
        sy.bench({**made, "chunkers": [lambda text: [text.upper()]]}, output=tmp_path / "wrong")
    with pytest.raises(sy.SteelyardError, match="no_such_module"):
        sy.bench({**made, "chunkers": [{"python": "no_such_module:cut"}]}, output=tmp_path / "wrong")


CHUNK_ROWS = [
    {"chunk_id": f"c{number}", "doc_id": doc, "start": start, "end": end, "text": TEXTS[doc][start:end]}
    for number, (doc, start, end) in enumerate([("a", 0, 21), ("a", 22, 79), ("b", 0, 43), ("b", 44, 75)])
]


def test_a_file_of_chunks_with_a_retriever_and_a_run_of_their_own(dataset: sy.Dataset, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CHUNK_ROWS), "utf-8")
    (tmp_path / "my_search.py").write_text("def search(query, k):\n    return ['c0', 'c3', 'c2'][:k]\n")
    sy.Run({"q1": {"c3": 2.0, "c0": 1.0}, "q2": {"c2": 1.0}}).write(tmp_path / "finished.run")
    path = written(
        tmp_path,
        EVIDENCE,
        chunkers=[{"chunks": "mine.jsonl"}, "whole"],
        retrievers=[
            "bm25-okapi",
            {"python": "my_search:search", "name": "search", "chunker": "mine"},
            {"run": {"path": "finished.run", "chunker": "mine"}},
        ],
        measures=["RR@3", "R(per=target)@3", "SpanR@3"],
    )
    result = sy.bench(path)
    assert list(result.runs) == ["bm25-okapi on mine", "search on mine", "finished on mine", "bm25-okapi on whole"]
    chunks = [{**row, "chunk_id": f"mine:{row['chunk_id']}"} for row in CHUNK_ROWS]
    qrels = sy.Evidence(EVIDENCE).judge(chunks)
    lists = {
        "search on mine": {query: ["mine:c0", "mine:c3", "mine:c2"] for query in QUERIES},
        "finished on mine": {"q1": ["mine:c3", "mine:c0"], "q2": ["mine:c2"]},
    }
    board = {row["run"]: row for row in result.comparison.leaderboard.iter_rows(named=True)}
    for name, run in lists.items():
        alone = sy.evaluate(qrels, run, ["RR@3", "R(per=target)@3", "SpanR@3"]).means
        assert {key: board[name][key] for key in alone} == pytest.approx(alone, abs=1e-12)
    assert not [row for row in result.rows if row.unknown_documents]


def test_problems_of_own_chunks(dataset: sy.Dataset, tmp_path: Path) -> None:
    run = tmp_path / "x.run"
    sy.Run({"q1": ["a"]}).write(run)
    for more, expected in (
        ({"chunkers": [{"chunks": "none.jsonl"}]}, "there is no file of chunks none.jsonl"),
        ({"chunkers": [{"python": {"module": "x"}}]}, "python: expected `target` and `name`, got module"),
        ({"retrievers": [{"run": str(run)}]}, "a finished run has chunks of its own; name their chunking"),
        ({"retrievers": [{"bm25-okapi": {"chunker": "hole"}}]}, "unknown chunker 'hole'.*whole"),
        (
            {"retrievers": [{"bm25-okapi": {"chunker": "whole"}}], "chunkers": [], "evidence": None},
            "`chunker` names a chunking, and there are no chunkers",
        ),
    ):
        with pytest.raises(InputError, match=expected):
            bench(dataset, tmp_path / "out", **more)
    rows = [{key: row[key] for key in ("chunk_id", "doc_id", "text")} for row in CHUNK_ROWS]
    (tmp_path / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(InputError, match="4 of 4 chunks have no start and end"):
        bench(dataset, tmp_path / "out", chunkers=[{"chunks": str(tmp_path / "bare.jsonl")}])


def test_span_measures_are_the_default_of_a_bench_of_chunkers(tmp_path: Path) -> None:
    path = written(tmp_path, EVIDENCE, measures=[])
    result = sy.bench(path)
    named = [f"{name}(budget=1000)" for name in ("SpanR", "SpanP", "SpanIoU")]
    assert result.comparison.keys == [*named, "R(per=target, budget=1000)"]
    assert "on SpanR(budget=1000)" in result.comparison.verdict
    (tmp_path / "facts").mkdir()
    facts = sy.bench(written(tmp_path / "facts", {"q2": EVIDENCE["q2"]}, measures=[]))
    assert facts.comparison.keys == ["R(per=target, budget=1000)"]


@needs_shared
@pytest.mark.slow
def test_two_chunkers_on_real_spans_depend_on_the_overlap_rule() -> None:
    """benchmarks/chunkers.py has six chunkers and two retrievers."""
    result = compared(DATA, [{"fixed": {"tokens": 80}}, {"fixed": {"tokens": 300}}], ["bm25-okapi"])
    board = {row.run: {key: round(value, 4) for key, value in row.means.items()} for row in result.leaderboard_rows}
    golden = {"bm25-okapi on fixed-80": (0.8041, 0.0602, 0.0593, 0.8668)}
    golden |= {"bm25-okapi on fixed-300": (0.7761, 0.0589, 0.0586, 0.8000)}
    assert board == {run: dict(zip(MEASURES, values, strict=True)) for run, values in golden.items()}
    (pair,) = [pair for pair in result.tested_pairs if pair.measure == "R(per=target, budget=600)"]
    assert pair.verdict == "undecided"
    numbers = dict(re.findall(r"(any|majority|whole) ([-+]\d\.\d{4})", pair.reason))
    assert numbers == {"any": "+0.0668", "majority": "+0.0364", "whole": "-0.1380"}
