"""The files of other tools: AutoRAG, LlamaIndex, ragas, MultiHop-RAG, MTEB and ranx."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from needs import import_peer
from steelyard import evaluate
from steelyard.errors import InputError
from steelyard.io import sniff
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run


def dump(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


class TestAutorag:
    def test_two_deep(self, file: Path) -> None:
        pl.DataFrame(
            {"qid": ["1", "2", "3"], "query": ["x", "y", "z"], "retrieval_gt": [[["a", "b"], ["c"]], [["d"]], [[]]]}
        ).write_parquet(file)
        assert sniff(file).format == "autorag"
        assert Qrels.read(file) == Qrels({"1": [["a", "b"], ["c"]], "2": [["d"]], "3": []})

    @pytest.mark.parametrize(
        ("truth", "expected"), [(["a", "b"], [["a"], ["b"]]), ([["a", "b"], ["c"]], [["a", "b"], ["c"]])]
    )
    def test_text_and_one_list_are_one_target(self, file: Path, truth: list[Any], expected: list[Any]) -> None:
        """AutoRAG's own reading: a text is [[text]] and a list of ids [list], one group of alternatives."""
        pl.DataFrame({"qid": ["1", "2"], "query": ["x", "y"], "retrieval_gt": truth}).write_parquet(file)
        qrels = Qrels.read(file)
        assert qrels == Qrels({"1": [expected[0]], "2": [expected[1]]})
        assert qrels.notes[0] == note("list-is-one-target")

    def test_result_with_scores_in_its_own_order(self, file: Path) -> None:
        pl.DataFrame(
            {
                "retrieved_contents": [["x", "y"], ["z"]],
                "retrieved_ids": [["b", "a"], ["c"]],
                "retrieve_scores": [[0.5, 0.9], [0.1]],
            }
        ).write_parquet(file)
        run = Run.read(file)
        assert run == Run({"0": [("b", 0.5), ("a", 0.9)], "1": [("c", 0.1)]})
        assert run.notes[0] == note("queries-numbered")

    def test_result_that_kept_the_questions_holds_both(self, file: Path) -> None:
        pl.DataFrame(
            {"qid": ["x", "y"], "retrieval_gt": [[["a"]], [["c"]]], "retrieved_ids": [["b", "a"], ["c"]]}
        ).write_parquet(file)
        assert sniff(file).kind == "either"
        assert Run.read(file).queries == Qrels.read(file).queries == ["x", "y"]

    def test_a_question_id_twice(self, file: Path) -> None:
        pl.DataFrame({"qid": ["x", "x"], "retrieval_gt": [[["a"]], [["c"]]]}).write_parquet(file)
        with pytest.raises(InputError, match="row 2: 'x', as row 1"):
            Qrels.read(file)

    def test_scores_that_do_not_match(self, file: Path) -> None:
        pl.DataFrame({"retrieved_ids": [["b", "a"]], "retrieve_scores": [[0.5]]}).write_parquet(file)
        with pytest.raises(InputError, match="has 2 documents and 1 score"):
            Run.read(file)


class TestLlamaIndex:
    DATASET: ClassVar[Any] = {
        "queries": {"q1": "What?", "q2": "Why?", "q3": "Who?"},
        "corpus": {"n1": "text", "n2": "text"},
        "relevant_docs": {"q1": ["n1"], "q2": ["n2", "n9"]},
        "mode": "text",
    }

    def test_dataset(self, file: Path) -> None:
        qrels = Qrels.read(dump(file, self.DATASET))
        assert sniff(file).format == "llama-index"
        assert qrels == Qrels({"q1": ["n1"], "q2": ["n2", "n9"], "q3": []})
        assert qrels.notes == (note("relevant-not-in-corpus", count=1, document="n9"),)

    def test_it_is_not_a_run(self, file: Path) -> None:
        with pytest.raises(InputError, match="this file holds qrels"):
            Run.read(dump(file, self.DATASET))


class TestRagas:
    ROWS: ClassVar[Any] = [
        {"user_input": "What?", "retrieved_context_ids": ["b", "a"], "reference_context_ids": ["a"]},
        {"user_input": "Why?", "retrieved_context_ids": [], "reference_context_ids": ["c", "d"]},
    ]

    @pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "csv", "csv-python"])
    def test_rows_in_any_file(self, file: Path, form: str) -> None:
        if form == "jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in self.ROWS))
        elif form == "json":
            dump(file, self.ROWS)
        elif form == "parquet":
            pl.DataFrame(self.ROWS).write_parquet(file)
        else:
            spell = json.dumps if form == "csv" else str
            rows = [{k: v if isinstance(v, str) else spell(v) for k, v in row.items()} for row in self.ROWS]
            pl.DataFrame(rows).write_csv(file)
        assert sniff(file).format == "ragas"
        run, qrels = Run.read(file), Qrels.read(file)
        assert run == Run({"0": ["b", "a"]})
        assert run.queries == ["0", "1"]
        assert qrels == Qrels({"0": ["a"], "1": ["c", "d"]})

    def test_an_id_column_is_used(self, file: Path) -> None:
        rows = [{"question_id": f"q{place}", **row} for place, row in enumerate(self.ROWS)]
        assert Qrels.read(dump(file, rows)).queries == ["q0", "q1"]
        assert Qrels.read(file, query_id="user_input").queries == ["What?", "Why?"]

    def test_number_ids(self, file: Path) -> None:
        dump(file, [{"id": 7, "retrieved_context_ids": [3, 1]}])
        assert Run.read(file) == Run({"7": ["3", "1"]})

    def test_a_printed_array_is_refused(self, file: Path) -> None:
        file.write_text("user_input,retrieved_context_ids\nWhat?,\"['a' 'b']\"\n")
        with pytest.raises(InputError, match="a printed array, without commas"):
            Run.read(file)


class TestMultihopRag:
    QUESTIONS: ClassVar[Any] = [
        {
            "query": "Who?",
            "answer": "A",
            "question_type": "inference_query",
            "evidence_list": [{"fact": "A  did\nit.", "url": "u1"}, {"fact": "B saw it.", "url": "u2"}],
        },
        {"query": "What?", "answer": "none", "question_type": "null_query", "evidence_list": []},
    ]

    def test_questions(self, file: Path) -> None:
        qrels = Qrels.read(dump(file, self.QUESTIONS))
        assert sniff(file).format == "multihop-rag"
        assert qrels == Qrels({"0": ["A did it.", "B saw it."], "1": []})
        assert Qrels.read(file, doc_id="url", query_id="query") == Qrels({"Who?": ["u1", "u2"], "What?": []})

    def test_results_hold_both(self, file: Path) -> None:
        results = [
            {
                "query": "Who?",
                "question_type": "inference_query",
                "retrieval_list": [
                    {"text": "Nothing here.", "score": 0.9},
                    {"text": "It is message A did it. B saw it.", "score": 0.5},
                ],
                "gold_list": [{"fact": "A did  it."}, {"fact": "B saw it."}, {"fact": "C was away."}],
            }
        ]
        dump(file, results)
        run, qrels = Run.read(file), Qrels.read(file)
        assert run == Run({"0": [("Nothing here.", 0.9), ("It is message A did it. B saw it.", 0.5)]})
        found = "It is message A did it. B saw it."
        assert qrels == Qrels.from_rows([("0", found, 1, "1"), ("0", found, 1, "2"), ("0", "C was away.", 1, "3")])

    def test_questions_are_not_a_run(self, file: Path) -> None:
        with pytest.raises(InputError, match="this file holds qrels"):
            Run.read(dump(file, self.QUESTIONS))


class TestMteb:
    LISTS: ClassVar[Any] = {"q1": {"a": 0.5, "b": 0.25}, "q2": {"a": 0.75}}

    def test_bare(self, file: Path) -> None:
        assert Run.read(dump(file, self.LISTS), format="mteb") == Run(self.LISTS)

    def test_one_subset_and_split(self, file: Path) -> None:
        meta = {"model_name": "lab/model", "revision": "1"}
        run = Run.read(dump(file, {"mteb_model_meta": meta, "default": {"test": self.LISTS}}))
        assert sniff(file).format == "mteb"
        assert run == Run(self.LISTS)
        assert run.name == "lab/model"
        assert list(map(str, run.notes)) == ["read subset 'default', split 'test'"]

    def test_several_have_to_be_chosen_from(self, file: Path) -> None:
        dump(file, {"en": {"test": self.LISTS, "dev": {"q9": {"a": 1.0}}}, "de": {"test": self.LISTS}})
        with pytest.raises(InputError, match="name one of en, de"):
            Run.read(file)
        assert Run.read(file, subset="en", split="dev") == Run({"q9": {"a": 1.0}})
        with pytest.raises(InputError, match="no split 'tset'; name one of test, dev.*Did you mean test"):
            Run.read(file, subset="en", split="tset")


# ranx leaves the files it reads to the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
class TestRanx:
    @pytest.fixture
    def ranx(self) -> Any:
        return import_peer("ranx")

    @pytest.mark.parametrize("name", ["run.json", "run.lz4"])
    def test_its_runs_are_read_and_ours_are_read_by_it(self, ranx: Any, tmp_path: Path, name: str) -> None:
        lists = {"q1": {"a": 2.5, "b": 1.5}, "q2": {"c": 0.125}}
        ranx.Run.from_dict(lists).save(str(tmp_path / name))
        assert Run.read(tmp_path / name) == Run(lists)
        Run(lists).write(tmp_path / f"ours-{name}")
        assert ranx.Run.from_file(str(tmp_path / f"ours-{name}")).to_dict() == lists

    @pytest.mark.parametrize("name", ["qrels.json", "qrels.trec"])
    def test_its_judgments_are_read_and_ours_are_read_by_it(self, ranx: Any, tmp_path: Path, name: str) -> None:
        grades = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}}
        ranx.Qrels.from_dict(grades).save(str(tmp_path / name))
        assert Qrels.read(tmp_path / name) == Qrels(grades)
        Qrels(grades).write(tmp_path / f"ours-{name}")
        assert ranx.Qrels.from_file(str(tmp_path / f"ours-{name}")).to_dict() == grades

    @pytest.mark.filterwarnings("ignore")  # numba's, of ranx's own code
    def test_its_objects_are_read(self, ranx: Any) -> None:
        grades = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
        lists = {"q1": {"a": 1.0, "u": 0.7, "b": 0.5}, "q2": {"z": 0.5}}
        qrels, run = ranx.Qrels(grades), ranx.Run(lists, name="mine")
        assert Qrels(qrels) == Qrels(grades)
        scores = evaluate(qrels, run, ["rbp.95", "ndcg@10"], dialect="ranx")
        assert scores.means == pytest.approx(ranx.evaluate(qrels, run, ["rbp.95", "ndcg@10"]), abs=1e-9)

    @pytest.mark.parametrize("package", ["lz4.frame", "cbor2"])
    def test_without_the_packages(self, file: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        path = file.with_suffix(".lz4")
        Run({"q1": {"a": 2.5}}).write(path)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InputError, match=r"pip install 'steelyard\[lz4\]'"):
            Run.read(path)

    def test_a_damaged_file(self, file: Path) -> None:
        path = file.with_suffix(".lz4")
        Run({f"q{number}": {"a": 2.5, "b": number / 7} for number in range(50)}).write(path)
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(InputError, match="truncated"):
            Run.read(path)
