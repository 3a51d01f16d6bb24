"""steelyard fuse: its output and its errors."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from steelyard.cli import run


@pytest.fixture
def files(tmp_path):
    qrels, first, second = tmp_path / "qrels.trec", tmp_path / "first.run", tmp_path / "second.run"
    qrels.write_text("".join(f"q{n} 0 a 1\n" for n in range(6)))
    first.write_text("".join(f"q{n} Q0 a 1 3 one\nq{n} Q0 b 2 1 one\n" for n in range(6)))
    second.write_text("".join(f"q{n} Q0 b 1 9 two\nq{n} Q0 c 2 8 two\nq{n} Q0 a 3 1 two\n" for n in range(5)))
    return str(qrels), str(first), str(second)


def test_fused_to_a_file(files, tmp_path, capsys):
    _, first, second = files
    target = tmp_path / "fused.run"
    assert run(["fuse", first, second, "--method", "rrf", "--set", "k=10", "-o", str(target)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "Run 'two' is missing 1 of 6 queries" in err
    assert sy.Run.read(target) == sy.fuse([first, second], method="rrf", k=10)
    assert sy.Run.read(target).name == "rrf(one,two)"


def test_fused_to_the_terminal(files, capsys):
    assert (
        run(
            [
                "fuse",
                files[1],
                files[2],
                "--method",
                "wsum",
                "--norm",
                "rank",
                "--weights",
                "1,0.5",
                "--set",
                "depth=1",
                "--set",
                "name=mix",
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "q0 Q0 a 1 1.1666666666666667 mix"
    assert len(lines) == 6


def test_parameters_of_every_method(files, capsys):
    for given in (["--method", "rbc", "--set", "phi=0.5"], ["--method", "logn-isr", "--set", "sigma=0.1"]):
        assert run(["fuse", *files[1:], *given, "--set", "depth=1"]) == 0
        assert capsys.readouterr().out.startswith("q0 Q0")


def test_tuned(files, tmp_path, capsys):
    qrels, first, second = files
    target = tmp_path / "fused.jsonl"
    arguments = [
        "fuse",
        first,
        second,
        "--method",
        "wsum",
        "--tune",
        qrels,
        "-m",
        "RR",
        "--set",
        "folds=3",
        "-o",
        str(target),
    ]
    assert run([*arguments, "--weights", "1:4,4:1", "--norm", "min-max,rank"]) == 0
    out, err = capsys.readouterr()
    assert "optimism" in out
    assert "fold 3: norm=min-max, weights=4:1; tuned on 1.0000, held out 1.0000" in out
    assert str(target) in err
    assert sy.evaluate(qrels, target, "RR")["RR"] == 1.0
    assert run([*arguments, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["held_out"] == 1.0
    assert made["settings"]["method"] == "wsum"
    assert [fold["queries"] for fold in made["folds"]] == [2, 2, 2]


@pytest.mark.parametrize("format", ["csv", "markdown", "latex"])
def test_tuned_in_every_format(files, capsys, format):
    assert run(["fuse", *files[1:], "--tune", files[0], "--set", "k=1,60", "--set", "folds=2", "--format", format]) == 0
    out, err = capsys.readouterr()
    assert "k=60" in out
    assert "Optimism" in err


def test_the_simplex_by_name(files, capsys):
    assert run(["fuse", *files[1:], "--tune", files[0], "--weights", "simplex", "--set", "folds=2"]) == 0
    assert "11 settings tried" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--method", "rff"], "Did you mean rrf"),
        (["--weights", "1;2"], "--weights is '1;2'; expected numbers, as in 0.7,0.3"),
        (["--weights", "1"], "1 weight for 2 runs"),
        (["--set", "k=1,2"], "k has 2 values; --tune QRELS chooses among them"),
        (["--set", "norm=z"], "there is no setting 'norm'; expected one of k, phi, sigma"),
        (["--tune", "QRELS", "--weights", "1,x"], "expected numbers, as in 1:1,2:1"),
        (["--k", "60"], "Use --set k=N."),
        (["--tune", "QRELS", "--set", "depth=5"], "--set depth cannot be used with --tune"),
        (["--tune", "QRELS", "--set", "k"], "--set k has no value; expected NAME=VALUE, as in k=N"),
        (["--tune", "QRELS", "--set", "k=a"], "expected numbers separated by ','"),
    ],
)
def test_wrong_commands_exit_with_2(files, capsys, given, message):
    assert run(["fuse", *files[1:], *(files[0] if word == "QRELS" else word for word in given)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_one_run_is_an_error(files, capsys):
    assert run(["fuse", files[1]]) == 2
    assert "expected two or more runs" in capsys.readouterr().err
