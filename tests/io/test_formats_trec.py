"""TREC files: what they may look like, and the errors where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import InputError
from steelyard.io import sniff, text, trec
from steelyard.io.text import line_blocks, number
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run

RUN = "q1 Q0 d1 1 12.5 bm25\nq1 Q0 d2 2 9.25 bm25\nq2 Q0 d1 1 3 bm25\n"
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d9 -1\n"


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class TestRuns:
    @pytest.mark.parametrize(
        "content",
        [
            RUN,
            RUN.replace(" ", "\t"),
            RUN.replace(" ", " \t  "),
            RUN.replace("\n", "\r\n"),
            RUN.replace("\n", "  \n"),
            "\ufeff" + RUN,
            "\n\n" + RUN.replace("\n", "\n\n"),
            "# made by hand\n" + RUN + "  # the end\n",
            RUN.rstrip("\n"),
            RUN.replace("q1 Q0", "   q1 Q0"),
            RUN.replace(" bm25\n", " bm25 and more words\n"),
            RUN.replace("Q0", "q0"),
        ],
    )
    def test_white_space_comments_and_ends(self, file: Path, content: str) -> None:
        run = Run.read(put(file, content))
        assert run == Run({"q1": {"d1": 12.5, "d2": 9.25}, "q2": {"d1": 3}})
        assert run.name == "bm25"
        assert not run.ordered

    def test_without_a_tag_the_file_names_the_run(self, tmp_path: Path) -> None:
        run = Run.read(put(tmp_path / "mine.v2.run", RUN.replace(" bm25", "")))
        assert run.name == "mine.v2"

    def test_notes_report_comments_and_tags(self, file: Path) -> None:
        run = Run.read(put(file, "# one\n" + RUN + "q3 Q0 d1 1 3 dense\n#two\n"))
        assert run.notes == (note("comments-skipped", count=2), note("several-tags", count=2, tags=["bm25", "dense"]))
        assert list(map(str, run.notes)) == [
            "2 comment lines (#) skipped",
            "2 tags in one file (bm25, dense, ...): the run is named after the first",
        ]

    def test_score_orders_and_not_rank(self, file: Path) -> None:
        run = Run.read(put(file, "q Q0 low 1 1.0 t\nq Q0 high 2 2.0 t\n"))
        assert run.frame["doc_id"].to_list() == ["high", "low"]

    def test_unicode_spaces_are_part_of_an_id(self, file: Path) -> None:
        run = Run.read(put(file, "q\u00a01 Q0 d\u30001\x1f 1 1.0 t\n"))
        assert run.table.row(0)[:2] == ("q\u00a01", "d\u30001\x1f")

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("q1 Q0 d1", "line 3: 3 columns"),
            ("q1 0 d1 1", "line 3: 4 columns, as in a line of qrels"),
            ("my query Q0 d1 1 0.5 t", "line 3: Q0 is in column 3 of 7; has the query id 'my query' a space?"),
            ("q1 Q0 a doc 1 0.5 t", "line 3: 7 columns, and the rank (column 4) is 'doc'; has an id a space?"),
            ("q1 Q0 d1 1 nan t", "line 3: score 'nan' is not a finite number"),
            ("q1 Q0 d1 1 -inf t", "line 3: score '-inf' is not a finite number"),
            ("q1 Q0 d1 1 1e999 t", "line 3: score '1e999' is not a finite number"),
            ("q1 Q0 d1 1 high t", "line 3: score 'high' is not a number"),
            ("q1 Q0 d1 1 1_000 t", "line 3: score '1_000' is not a number"),
        ],
    )
    def test_a_wrong_line(self, file: Path, line: str, message: str) -> None:
        put(file, "q1 Q0 d1 1 12.5 bm25\n\n" + line + "\nq1 Q0 d2 2 9.25 bm25\n")
        with pytest.raises(InputError) as caught:
            Run.read(file, format="trec-run")
        assert message in str(caught.value)
        assert str(caught.value).startswith(f"{file}: 1 line is not as expected:")

    def test_ten_problems_and_a_count(self, file: Path) -> None:
        put(file, RUN + "bad\n" * 25)
        with pytest.raises(InputError) as caught:
            Run.read(file, format="trec-run")
        text = str(caught.value)
        assert "25 lines are not as expected" in text
        assert "line 4: 1 column" in text
        assert "line 13:" in text
        assert "line 14:" not in text
        assert "... and 15 more" in text

    def test_a_line_far_down(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Past the first block, and past a comment: lines are counted as an editor counts them."""
        monkeypatch.setattr(text, "line_blocks", lambda path: line_blocks(path, 1))
        line = "a-query-with-a-name Q0 a-document-with-a-name 1 12.5 tag\n"
        put(file, line * 400_000 + "# note\nquery-one Q0 d\n" + line * 100)
        with pytest.raises(InputError, match=r"line 400,002: 3 columns"):
            Run.read(file)


class TestJudgments:
    @pytest.mark.parametrize(
        "content",
        [
            QRELS,
            QRELS.replace(" ", "\t\t"),
            QRELS.replace("\n", "\r\n"),
            "\ufeff" + QRELS,
            "# a comment\n" + QRELS,
            "\n" + QRELS + "\n",
            QRELS.replace(" 2\n", " 2.0\n"),
            QRELS + QRELS,
        ],
    )
    def test_white_space_comments_and_ends(self, file: Path, content: str) -> None:
        assert Qrels.read(put(file, content)) == Qrels({"q1": {"d1": 2, "d2": 0}, "q2": {"d9": -1}})

    def test_a_hash_inside_an_id_is_not_a_comment(self, file: Path) -> None:
        assert Qrels.read(put(file, "q1 0 d#1 1\n")) == Qrels({"q1": {"d#1": 1}})

    def test_float_grades(self, file: Path) -> None:
        assert Qrels.read(put(file, "q1 0 d1 0.5\nq1 0 d2 -1.5\n")).grades.tolist() == [0.5, -1.5]
        with pytest.raises(InputError, match=r"2 grades are not whole numbers \(as 0.5\)"):
            Qrels.read(file).write(file.with_name("out.qrels"))

    def test_merged_judgments_are_reported(self, file: Path) -> None:
        assert Qrels.read(put(file, QRELS + QRELS)).notes == (note("judgments-merged", count=3),)

    def test_disagreement_names_the_line(self, file: Path) -> None:
        put(file, "# head\n" + QRELS + "q1 0 d1 1\n")
        with pytest.raises(InputError) as caught:
            Qrels.read(file)
        assert str(caught.value).startswith(f"{file}: 1 judgment disagrees")
        assert "line 5: query 'q1', document 'd1': graded 1, and before 2" in str(caught.value)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("q1 0 d1", "line 2: 3 columns"),
            ("q1 0 d1 1 extra", "line 2: 5 columns"),
            ("q1 Q0 d1 1 12.5 bm25", "line 2: 6 columns, as in a line of a run"),
            ("q1 0 d1 yes", "line 2: grade 'yes' is not a number"),
            ("q1 0 d1 NaN", "line 2: grade 'NaN' is not a finite number"),
        ],
    )
    @pytest.mark.parametrize("block", [1, 1 << 26])
    def test_a_wrong_line(
        self, file: Path, line: str, message: str, block: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text, "line_blocks", lambda path: line_blocks(path, block))
        put(file, "q1 0 d1 2\n" + line + "\n" + QRELS)
        with pytest.raises(InputError) as caught:
            Qrels.read(file, format="trec-qrels")
        assert message in str(caught.value)

    @pytest.mark.parametrize("content", [QRELS, "# c\n" + QRELS + QRELS, QRELS.replace(" ", "\t ")])
    def test_blocks_do_not_matter(self, file: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
        at_once = Qrels.read(put(file, content), format="trec-qrels")
        monkeypatch.setattr(text, "line_blocks", lambda path: line_blocks(path, 1))
        in_blocks = Qrels.read(file, format="trec-qrels")
        assert in_blocks == at_once
        assert in_blocks.notes == at_once.notes

    def test_lines_are_numbered_with_comments_and_blank_lines(self, file: Path) -> None:
        put(file, "# head\n\nq1 0 d1 2\n\n# middle\nq1 0 d2 0\nq1 0 d1 1\n")
        with pytest.raises(InputError, match=r"line 7: query 'q1', document 'd1': graded 1, and before 2"):
            Qrels.read(file, format="trec-qrels")


class TestSubtopics:
    WEB = "51 1 a 1\n51 2 a 0\n51 2 b 2\n51 0 c 0\n52 1 a -2\n"

    def test_documents_judged_under_several_subtopics(self, file: Path) -> None:
        qrels = Qrels.read(put(file, self.WEB))
        assert sniff(file).format == "trec-diversity"
        assert qrels.notes == (note("read-as-subtopics"),)
        expected = [
            ("51", "a", 1, "1"),
            ("51", "a", 0, "2"),
            ("51", "b", 2, "2"),
            ("51", "c", 0, None),
            ("52", "a", -2, "1"),
        ]
        assert qrels == Qrels.from_rows(expected)

    def test_rounds_of_judging_are_not_subtopics(self, file: Path) -> None:
        put(file, "1 4.5 a 2\n1 5 b 0\n1 0.5 c 1\n")
        qrels = Qrels.read(file)
        assert not qrels.has_targets
        assert "column 2 has 3 values (0.5, 4.5, 5, ...) and was not used" in str(qrels.notes[0])
        assert Qrels.read(file, format="trec-diversity").has_targets

    def test_insisting_on_plain(self, file: Path) -> None:
        with pytest.raises(InputError, match="read the file with format='trec-diversity'"):
            Qrels.read(put(file, self.WEB), format="trec-qrels")

    def test_subtopics_that_show_only_far_down(self, file: Path) -> None:
        lines = [f"{topic} {1 + topic % 2} d{doc} 1\n" for topic in range(300) for doc in range(100)]
        put(file, "".join(lines) + "0 2 d0 1\n")
        assert sniff(file).format == "trec-diversity"


class TestMsMarco:
    def test_run(self, file: Path) -> None:
        run = Run.read(put(file, "7\t30\t2\n7\t10\t1\n7\t20\t3\n9\t10\t1\n"))
        assert sniff(file).kind == "run"
        assert run == Run({"7": ["10", "30", "20"], "9": ["10"]})

    def test_judgments_of_four_and_three_columns(self, file: Path) -> None:
        four = Qrels.read(put(file, "7\t0\t30\t1\n9\t0\t10\t1\n"), format="msmarco")
        three = Qrels.read(put(file, "7\t30\t1\n9\t10\t1\n"))
        assert three == four == Qrels({"7": ["30"], "9": ["10"]})
        assert note("three-columns") in three.notes

    def test_a_run_is_not_taken_for_judgments(self, file: Path) -> None:
        put(file, "7\t30\t1\n7\t10\t2\n7\t20\t3\n")
        with pytest.raises(InputError, match="this file holds a run"):
            Qrels.read(file)

    def test_a_wrong_rank(self, file: Path) -> None:
        put(file, "7\t30\t1\n7\t10\t0\n7\t11\t1.5\n7 1 2 3\n")
        with pytest.raises(InputError) as caught:
            Run.read(file, format="msmarco")
        assert "3 lines are not" in str(caught.value)
        assert "line 2: rank '0' is not 1, 2, 3, ..." in str(caught.value)
        assert "line 4: 4 columns" in str(caught.value)


@given(st.text("0123456789+-.eEnaifty_xX", min_size=1, max_size=7))
def test_both_readers_agree_on_what_a_number_is(field: str) -> None:
    import polars as pl

    ours = number(field.encode())
    theirs = pl.Series([field]).cast(pl.Float64, strict=False)[0]
    assert (ours is None) == (theirs is None)
    assert ours is None or ours == theirs or (ours != ours and theirs != theirs)


@given(st.lists(st.text("q01 \tQdx.-#\n", max_size=12), min_size=1, max_size=6))
def test_a_block_passes_when_each_of_its_lines_does(pieces: list[str]) -> None:
    """The check of whole blocks and the check of lines are two writings of one rule."""
    from steelyard.io.text import _block_frame, _one_separator, _without_comments

    block = "".join(f"q1 Q0 d1 1 {piece}\n{piece} 1 2 t\n" for piece in pieces).encode()
    body, separator = _one_separator(block)
    fields = [line.split() for line in block.split(b"\n") if line.strip() and not line.strip().startswith(b"#")]
    frame = _block_frame(_without_comments(body)[0], separator, 6)
    assert frame.height == len(fields)
    if frame.height:
        assert trec.run_passes(frame) == all(trec.check_run(line) is None for line in fields)
