"""Every numeric option and setting of every verb with numbers that no code expects: never an internal error."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from steelyard.cli import _MODULES, VERBS
from steelyard.cli import run as steelyard
from steelyard.cli.arguments import _unwrapped, verb_parser

ODD = ["nan", "-1", "0", "1e300", "inf", "-inf", str(10**30), str(-(10**30)), "0.5", "1" + "0" * 400, "x", ""]

COMMANDS = {
    "evaluate": ["qrels.txt", "a.trec"],
    "compare": ["qrels.txt", "a.trec", "b.trec"],
    "stages": ["qrels.txt", "retrieve=a.trec", "rerank=b.trec"],
    "pool": ["a.trec", "b.trec", "-o", "pool-out.jsonl"],
    "judge": ["pool.jsonl", "--dataset", "data", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "--plan"],
    "questions": ["data", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "-o", "questions", "--plan"],
    "agreement": ["a=qrels.txt", "b=other.txt", "--runs", "a.trec", "--runs", "b.trec"],
    "fuse": ["a.trec", "b.trec", "-o", "fused.trec"],
    "gate": ["scores.json", "--rule", "nDCG@10 >= 0.1"],
    "history": ["history.jsonl"],
    "bench": ["bench.yaml", "-o", "out"],
    "across": ["one=scores.json", "two=scores.json"],
    "evidence": ["evidence.jsonl", "data"],
    "reconcile": ["qrels.txt", "a.trec", "--value", "nDCG@10=0.5"],
}
"""Arguments with which a verb works; a verb without numeric options needs none."""


def numeric_options() -> list[tuple[str, str]]:
    found = []
    for verb in VERBS:
        function = getattr(import_module(f"steelyard.cli.{_MODULES.get(verb, verb)}"), verb)
        parser = verb_parser(verb, function, 80)
        for action in parser._actions:
            if action.type in (int, float) and action.option_strings:
                found.append((verb, action.option_strings[0]))
        for name, each in parser.settings.items():
            if _unwrapped(each.kind)[1] in (int, float):
                found.append((verb, f"--set={name}"))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numeric")
    queries = [f"q{number}" for number in range(3)]
    (folder / "qrels.txt").write_text("".join(f"{q} 0 d{n} {n % 3}\n" for q in queries for n in range(4)))
    (folder / "other.txt").write_text("".join(f"{q} 0 d{n} {n % 2}\n" for q in queries for n in range(4)))
    for name, step in (("a", 1), ("b", 3)):
        lines = [f"{q} Q0 d{n * step % 7} {n} {9 - n} {name}\n" for q in queries for n in range(7)]
        (folder / f"{name}.trec").write_text("".join(lines))
    (folder / "data").mkdir()
    for name, ids in (("queries", queries), ("corpus", [f"d{number}" for number in range(7)])):
        lines = [json.dumps({"_id": key, "text": f"text of {key}"}) for key in ids]
        (folder / "data" / f"{name}.jsonl").write_text("\n".join(lines))
    (folder / "bench.yaml").write_text("dataset: data\nretrievers: [bm25-okapi]\n")
    values = {"means": {"nDCG@10": 0.5}, "values": {"nDCG@10": [0.4, 0.6]}}
    line = {"time": "2026-01-01T00:00:00+00:00", "dataset": "d", "measures": {"nDCG@10": "x"}, "fingerprints": {}}
    (folder / "history.jsonl").write_text(json.dumps({**line, "queries": ["q0", "q1"], "runs": {"a": values}}) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert steelyard(["pool", "a.trec", "b.trec", "-o", "pool.jsonl"]) == 0
        assert steelyard(["compare", "qrels.txt", "a.trec", "b.trec", "--format", "json", "-o", "scores.json"]) == 0
    return folder


def test_every_verb_with_a_numeric_option_is_tried():
    assert len(numeric_options()) > 40
    assert {verb for verb, _ in numeric_options()} <= set(COMMANDS)


@pytest.mark.parametrize(("verb", "option"), numeric_options())
def test_an_odd_number_is_no_internal_error(folder, monkeypatch, capsys, verb, option):
    monkeypatch.chdir(folder)
    for value in ODD:
        code = steelyard([verb, *COMMANDS[verb], f"{option}={value}"])
        said = capsys.readouterr().err
        assert code in (0, 1, 2), (verb, option, value, said)
        assert "Traceback" not in said
