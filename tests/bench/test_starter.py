"""The starter bench.yaml, and the report of everything that is wrong in a bench.yaml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.benchmark.config import write_starter


def beir_folder(folder: Path) -> Path:
    """A plain BEIR folder: no targets, no distractors, no columns of the queries."""
    (folder / "qrels").mkdir(parents=True)
    words = ["apple", "pear", "plum", "fig", "kiwi", "lime"]
    for name, rows in (
        ("corpus", [{"_id": f"d{n}", "title": "", "text": f"{word} tree"} for n, word in enumerate(words)]),
        ("queries", [{"_id": f"q{n}", "text": f"{word} fruit"} for n, word in enumerate(words)]),
    ):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(len(words)))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


def test_the_starter_runs_on_a_beir_folder_if_only_its_dataset_is_changed(tmp_path: Path) -> None:
    data = beir_folder(tmp_path / "data")
    path = write_starter(tmp_path)
    path.write_text(path.read_text().replace("\ndataset: demo\n", f"\ndataset: {data.name}\n"))
    result = sy.bench(path, output=tmp_path / "out")
    assert result.comparison.keys == ["nDCG@10", "R@20", "RR@10", "Latency"]
    assert result.comparison.weights is None
    assert "nDCG@10" in str(result.comparison.verdict)
    codes = {note.code for each in result.comparison.coverage.values() for note in each.all_notes()}
    assert not codes & {"no-targets", "no-distractors"}


def report(folder: Path, text: str) -> list[str]:
    """The lines of the error; nothing is run."""
    path = folder / "bench.yaml"
    path.write_text(text)
    ran: list[str] = []
    with pytest.raises(sy.InputError) as error:
        sy.bench(path, output=folder / "out", watch=lambda step, done, total: ran.append(step))
    assert not ran
    assert not (folder / "out").exists()
    return str(error.value).splitlines()[1:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "retrievers: [bm25-okap]\nmeasures: [nDGC@10]\n",
            ["`dataset` is missing", "line 1: unknown retriever", "line 2: unknown measure"],
        ),
        (
            "dataset: demo\nmeasures: [nDGC@10]\ntest: z\ncorrection: hlm\n",
            [
                "`retrievers` is missing",
                "line 2: unknown measure",
                "line 4: unknown correction",
                "line 3: unknown test",
            ],
        ),
        (
            "dataset: demo\nretrievers: []\nmissing: zer\nties: x\n",
            ["line 2: retrievers: empty", "line 3: missing='zer'", "line 4: ties='x'", "no measures"],
        ),
        (
            "dataset: demo\nretrievers:\n- bm25:\n    k1: abc\n    bb: 2\n    cc: 3\nmeasures: [AP]\n",
            [
                "line 5: bm25: unknown setting 'bb'",
                "line 6: bm25: unknown setting 'cc'",
                "line 3: bm25-okapi: `k1` is 'abc'",
            ],
        ),
        (
            "dataset: demo\nretrievers: [random]\nmeasures: [AP]\nby: nope\nbaseline: x\n",
            ["line 5: the baseline 'x'", "line 4: `by` is 'nope'"],
        ),
        (
            "dataset: {path: demo, splt: x}\nretrievers: [random]\nmeasures: [nope]\n",
            ["line 3: unknown measure", "line 1: a beir dataset has no option 'splt'"],
        ),
        (
            "dataset: demo\nretrievers: [random]\nmeasures: [AP]\ncomposite: {AP: -1, Foo@2: 1}\n",
            ["line 4: the composite: the weight of AP", "line 4: unknown measure 'Foo'"],
        ),
    ],
)
def test_all_mistakes_are_reported_together_before_anything_runs(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    lines = report(tmp_path, text)
    assert len(lines) == len(expected)
    for part in expected:
        assert any(part in line for line in lines), (part, lines)
