"""Names from files reach the terminal, spreadsheets and Markdown as text, never as a command, a formula or a tag."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

import steelyard as sy
from steelyard.benchmark.folder import leftover_files, load_result
from steelyard.cli import run as command
from steelyard.cli.output import print_message, progress_bar, with_progress
from steelyard.errors import InputError
from steelyard.report.tables import Table, comma_separated, latex, markdown, plain, table_html
from steelyard.safe_text import json_text, markdown_text, terminal_text

ESCAPES = "a\x1b[2J\x9b1m\u202eb\u2066c\r\x00\x07\x7f\ud800\U000e0041"
FORBIDDEN = ("\x1b", "\x9b", "\u202e", "\u2066", "\r", "\x00", "\x07", "\x7f", "\ud800", "\U000e0041")


def is_safe(text):
    return not any(char in text for char in FORBIDDEN)


def test_text_for_the_terminal_is_visible():
    shown = terminal_text(ESCAPES)
    assert is_safe(shown)
    assert shown.startswith(r"a\x1b[2J\x9b1m\u202eb\u2066c\r\x00\x07\x7f\ud800")
    assert terminal_text("é 漢字 👩\u200d🔬 naïve\n\tx") == "é 漢字 👩\u200d🔬 naïve\n\tx"


@pytest.mark.parametrize("form", [plain, markdown, latex, table_html])
def test_every_form_of_a_table_is_safe(form):
    table = Table([ESCAPES, "n"], [[f"{ESCAPES}\nrow", 1.0]], title=ESCAPES if form is plain else "", note="")
    shown = form(table)
    assert is_safe(shown)
    assert "\nrow" not in shown


def test_names_of_a_comparison_do_not_reach_the_terminal(tmp_path, capsys):
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    name = "x\x1b]0;title\x07\u202e"
    for run in ("a", name):
        (tmp_path / f"{run}.run").write_text("q1 Q0 d1 1 2.0 r\nq2 Q0 d3 1 2.0 r\n")
    files = [str(tmp_path / "a.qrels"), str(tmp_path / "a.run"), str(tmp_path / f"{name}.run")]
    for more in ([], ["--all", "--set", "movers=2"], ["--format", "markdown"], ["--format", "json"]):
        assert command(["compare", *files, "-m", "AP", *more]) == 0
        shown = capsys.readouterr()
        assert is_safe(shown.out + shown.err)
    assert command(["compare", files[0], files[2] + "\x1b[31m", "-m", "AP"]) == 2
    assert is_safe(capsys.readouterr().err)


def test_messages_and_progress_are_safe(monkeypatch, capsys):
    print_message(ESCAPES)
    assert is_safe(capsys.readouterr().err)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert list(with_progress(["[/x]\x1b[2J", "b"], str)) == ["[/x]\x1b[2J", "b"]
    with progress_bar() as progress:
        progress("running [/bold] \x1b[2J", 1, 2)


def test_json_is_read_back_unchanged():
    text = json_text(json.dumps({ESCAPES: ESCAPES}, ensure_ascii=False))
    assert is_safe(text)
    assert json.loads(text) == {ESCAPES: ESCAPES}


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-v", "@SUM(A1)", "\t=1", '=HYPERLINK("x")'])
def test_no_cell_of_csv_is_a_formula(name, tmp_path):
    text = comma_separated(Table(["query_id", "run", name], [["q", name, -1.5], ["-5", "b", None]]))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [["query_id", "run", f"'{name}"], ["q", f"'{name}", "-1.5"], ["-5", "b", ""]]


def test_csv_of_scores_is_read_back_with_its_names(tmp_path):
    lines = ["run,query_id,AP", "'=a,'-q1,0.5", "'=a,q2,0.25", "b,'-q1,0.25", "b,q2,0.5"]
    (tmp_path / "scores.csv").write_text("\n".join(lines))
    result = sy.compare_scores(tmp_path / "scores.csv")
    assert set(result.runs) == {"=a", "b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<img src=x>", r"\<img src=x>"),
        (r"\<img>", r"\<img>"),
        (r"\\<img>", r"\\\<img>"),
        ("</td><script>", r"\</td>\<script>"),
        ("![x](http://y)", r"![x]\(http://y)"),
        ("`<b>`", "`<b>`"),
        ("`a` <b> `c`", r"`a` \<b> `c`"),
        ("p < 0.05 and a<1", "p < 0.05 and a<1"),
        ("a\n# b", r"a\n# b"),
    ],
)
def test_markdown_has_no_html_and_no_links(text, expected):
    assert markdown_text(text) == expected
    assert expected.replace("|", "\\|") in markdown(Table(["run"], [[text]]))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    data = sy.Dataset.of(
        {"d1": "a fox", "d2": "a wolf"}, {"q1": "fox", "q2": "wolf"}, {"q1": {"d1": 1}, "q2": {"d2": 1}}
    )
    folder = tmp_path_factory.mktemp("out")
    sy.bench({"dataset": data, "retrievers": ["bm25-okapi", "random"], "measures": ["RR"]}, folder)
    return folder


@pytest.mark.parametrize("name", ["../outside.parquet", "/etc/passwd", "..", "", "a/b.parquet", "a\\b.parquet", "x\0"])
def test_a_file_name_in_a_result_stays_in_its_folder(result, tmp_path, name, capsys):
    folder = tmp_path / "out"
    shutil.copytree(result, folder)
    record = json.loads((folder / "result.json").read_text())
    shutil.copy(folder / "runs" / record["runs"][0]["file"], tmp_path / "out" / "outside.parquet")
    record["runs"][0]["file"] = name
    (folder / "result.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="is not the name of a file in the folder"):
        load_result(folder)
    for verb in (["report", str(folder), "-o", str(tmp_path / "x.html")], ["gate", str(folder), "--rule", "RR >= 0"]):
        assert command(verb) == 2
        assert "is not the name of a file" in capsys.readouterr().err
    assert all(path.is_relative_to(folder) for path in leftover_files(folder, record, [], []))
