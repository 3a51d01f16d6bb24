"""Datasets by path or name, in the layout of a format; and of parts in files of their own.

Queries and documents are read from CSV, TSV, JSON, JSON lines, Parquet or plain text: columns are found by their usual
names, or named. A corpus may also be a folder of text files, or in a database.
"""

from __future__ import annotations

import csv
import inspect
import io
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.checks import unknown_name
from steelyard.datasets.corpus import Corpus, CorpusBuilder, Queries, QueriesBuilder, as_id
from steelyard.datasets.dataset import Dataset, with_unjudged
from steelyard.datasets.findings import Finding
from steelyard.errors import InputError, did_you_mean
from steelyard.frames import as_polars, is_frame
from steelyard.ids import kind_of
from steelyard.io.beir import EXPECTED_DOCUMENT, beir_qrels, read_objects
from steelyard.io.columns import first_named
from steelyard.io.files import bare_name, errors_name, listing, no_such_file, reading, streams_read_once
from steelyard.io.formats import Layout, every_format
from steelyard.io.judgments import is_judgments_file, read_judgments
from steelyard.io.text import Source, bad_lines, parse_json, shortened
from steelyard.io.unpacking import load_yaml
from steelyard.lazy import looked_up
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.wording import counted, in_words

IR_DATASETS = "ir_datasets:"
FORMS = (
    "demo, ir_datasets:ID, a path, a path with options, as in {path: data, qrels: judged.tsv}, or the parts of one, as "
    "in {queries: questions.csv, corpus: docs/}"
)
"""How a dataset is named in bench.yaml and on the command line."""


@streams_read_once()
def read_dataset(source: str | Path, format: str | None, options: Mapping[str, Any], judged: bool = True) -> Dataset:
    """Read a dataset with the reader of its format; with `judged=False`, without qrels in files of their own."""
    layouts = _layouts()
    if format is not None and format not in layouts:
        raise InputError(unknown_name("dataset format", format, layouts))
    if isinstance(source, str) and source == "demo" and format is None:
        from importlib.resources import as_file, files

        with as_file(files("steelyard.demo") / "data") as folder:
            return replace(_reader("beir", options)(folder, **options), name="demo")
    if isinstance(source, str) and (source.startswith(IR_DATASETS) or format == "ir_datasets"):
        return _reader("ir_datasets", options)(source.removeprefix(IR_DATASETS), **options)
    path = Path(source)
    if not os.path.exists(path):
        forms = f"A dataset is a folder, a file, the name demo, or {IR_DATASETS} and an id."
        raise InputError(f"{no_such_file(path, 'folder or file').message} {forms}", path)
    # Whether `corpus` or `queries` of a folder is something else than the name of a JSON lines file.
    named = [options[part] for part in ("corpus", "queries") if options.get(part) is not None]
    other_form = any(not isinstance(spec, str) or bare_name(Path(spec)).suffix.lower() != ".jsonl" for spec in named)
    if path.is_dir() and format in (None, "beir") and other_form:
        _reader("beir", options)
        return read_folder(path, options, judged)
    reader = _reader(format or _format_of(path), options)
    if not judged and "judged" in inspect.signature(reader).parameters:
        options = {**options, "judged": False}
    with reading(path):
        return reader(path, **options)


def _layouts() -> dict[str, Layout]:
    """Every format that has datasets, in the order in which they are asked whether a path is their own."""
    return {fmt.name: fmt.dataset for fmt in every_format() if fmt.dataset is not None}


def _reader(format: str, options: Mapping[str, Any]) -> Callable[..., Dataset]:
    """The reader of a format; an error if it does not have one of the options."""
    reader = _layouts()[format].read
    allowed = list(inspect.signature(reader).parameters)[1:]
    for option in options:
        if option not in allowed:
            listed = f"{', '.join(allowed)}.{did_you_mean(option, allowed)}"
            raise InputError(f"a {format} dataset has no option {option!r}; its options are {listed}")
    return reader


def _format_of(path: Path) -> str:
    layouts = _layouts()
    for name, layout in layouts.items():
        if layout.detect(path):
            return name
    how = in_words("format=...", "'{path: PATH, format: FORMAT}'")
    if path.is_dir():
        files = "; ".join(f"{layout.files} ({name})" for name, layout in layouts.items() if layout.files)
        problem = f"unknown layout: expected {files}. The folder holds {listing(path)}"
        raise InputError(f"{problem}. Name the file to read, or the format ({how}).", path)
    suffix = bare_name(path).suffix.lower()
    if suffix == ".jsonl":
        raise InputError(f"one file of a dataset in BEIR's layout; name its folder, {path.parent}.", path)
    raise InputError(f"unknown suffix {suffix!r}; name the format ({how}): {', '.join(layouts)}.", path)


def queries_beside(qrels: Path) -> Path | None:
    """The queries.jsonl beside a qrels file, or above its folder `qrels`; or in a folder given instead of the file."""
    beside = qrels.parent.parent if qrels.parent.name == "qrels" else qrels.parent
    path = (qrels if qrels.is_dir() else beside) / "queries.jsonl"
    return path if path.is_file() else None


def dataset_named(named: Any, folder: Path = Path(), judged: bool = True) -> Dataset:
    """The dataset named; paths are relative to `folder`, and `judged` is as in Dataset.read.

    A text that starts with { is a mapping in YAML, as in bench.yaml. A qrels file (`qrels`) is searched in the dataset
    first, as the files of other options, then in `folder`; qrels that are no path replace those of the dataset.

    >>> dataset_named("{path: demo, unjudged: drop}")
    Dataset 'demo': 267 documents, 115 queries, 572 judgments, 152 targets
    """
    if isinstance(named, Dataset):
        return named
    path, options = path_and_options(named)
    if path is None:
        return dataset_of_parts(options, folder, judged)
    place = path if path == "demo" or not os.path.exists(folder / path) else folder / path
    qrels = options.get("qrels")
    if isinstance(qrels, str) and not os.path.exists(Path(place) / qrels) and os.path.exists(folder / qrels):
        options["qrels"] = str((folder / qrels).resolve())
    if qrels is not None and not isinstance(qrels, (str, Path)):
        others = {name: value for name, value in options.items() if name != "qrels"}
        dataset = Dataset.read(place, **{**others, "judged": False})
        inside = isinstance(qrels, Mapping) and os.path.exists(Path(place) / str(qrels.get("path")))
        judgments = read_judged(qrels, Path(place) if inside else folder, dataset.queries)
        return replace(dataset, qrels=judgments, notes=(*dataset.notes, *judgments.notes))
    return Dataset.read(place, **{"judged": judged, **options})


def path_and_options(named: Any) -> tuple[str | Path | None, dict[str, Any]]:
    """The path or name of a dataset, and its options; no path for a dataset of parts, as in {queries: FILE}."""
    if isinstance(named, str) and named.lstrip().startswith("{"):
        import yaml

        try:
            named = load_yaml(named)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"the dataset {named!r} is not YAML ({reason}); expected {FORMS}.") from None
    if isinstance(named, (str, Path)):
        return named, {}
    options = {str(key): value for key, value in named.items()} if isinstance(named, Mapping) else {}
    if "queries" in options and "path" not in options:
        return None, options
    path = options.pop("path", None)
    if not isinstance(path, (str, Path)):
        raise InputError(f"the dataset is {named!r}; expected {FORMS}.")
    return path, options


PARTS = ("queries", "corpus", "qrels", "name")  # The parts that a dataset without a path is made of.
QUESTION_NAMES = ("question", "query", "text", "prompt", "input")
QUESTION_IDS = ("_id", "id", "query_id", "qid", "question_id")
DOCUMENT_TEXTS = ("text", "contents", "content", "body", "page_content", "passage")
DOCUMENT_IDS = ("_id", "id", "doc_id", "docid", "docno", "corpus_id", "pid", "url", "path")
"""The usual names of columns, in any case."""
TEXT_FILES = (".txt", ".md", ".markdown", ".rst")  # The files that a folder of documents may have.
STORES = ("postgres", "sqlite", "lancedb", "chroma", "qdrant")  # Databases that a corpus can be read from.
LONG = 10_000  # A question with more characters than this is reported.
_SEPARATORS = ",;\t|"
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
_ONE_COLUMN = "\x1f"  # The separator of a table with one column: the commas in its cells separate nothing.


def dataset_of_parts(parts: Mapping[str, Any], folder: Path, judged: bool = True) -> Dataset:
    """A dataset from `queries`, and from `corpus` and `qrels` if they are given; paths are relative to `folder`."""
    for name in parts:
        if name not in PARTS:
            options = f"its options are {', '.join(PARTS)}.{did_you_mean(name, PARTS)}"
            raise InputError(f"a dataset without a path has no option {name!r}; {options}")
    if parts.get("queries") is None:
        raise InputError("a dataset needs `queries`, as in queries: questions.csv.")
    queries, notes = read_queries(parts["queries"], folder)
    corpus, findings = read_corpus(parts.get("corpus"), folder)
    qrels = Qrels({})
    if judged and parts.get("qrels") is not None:
        qrels = read_judged(parts["qrels"], folder, queries)
    named = parts["queries"].get("path") if isinstance(parts["queries"], Mapping) else parts["queries"]
    name = parts.get("name") or (bare_name(Path(named)).stem if isinstance(named, (str, Path)) else "questions")
    return Dataset(str(name), corpus, queries, qrels, (*notes, *qrels.notes), findings)


def read_judged(named: Any, folder: Path, queries: Queries) -> Qrels:
    """The qrels that a file holds, or a judgments file, or a table with columns named, or anything else for `Qrels`.

    >>> read_judged({"q1": ["d1"]}, Path(), Queries.of({"q1": "What is a steelyard?"}))
    Qrels: 1 query, 1 judgment, 1 relevant
    """
    columns = {}
    if isinstance(named, Mapping) and isinstance(named.get("path"), (str, Path)):
        columns = {str(role): str(column) for role, column in named.items() if role != "path"}
        named = named["path"]
    if not isinstance(named, (str, Path)):
        return Qrels.of(named)
    if is_judgments_file(folder / named):
        return read_judgments(folder / named).for_questions(queries).qrels()
    return Qrels.read(folder / named, **columns)


def read_folder(folder: Path, options: Mapping[str, Any], judged: bool) -> Dataset:
    """A folder in BEIR's layout whose `corpus` or `queries` is a file in another form."""
    queries, notes = read_queries(options.get("queries") or "queries.jsonl", folder)
    corpus, corpus_findings = read_corpus(options.get("corpus") or "corpus.jsonl", folder)
    split, named = options.get("split"), options.get("qrels")
    qrels, one_of_several, chosen, judgment_findings = beir_qrels(folder, split, named, judged)
    policy = options.get("unjudged") or ("drop" if one_of_several else "keep")
    notes, findings = (*notes, *chosen, *qrels.notes), (*judgment_findings, *corpus_findings)
    return with_unjudged(Dataset(folder.resolve().name, corpus, queries, qrels, notes, findings), policy)


def read_queries(source: Any, folder: Path = Path()) -> tuple[Queries, tuple[Note, ...]]:
    """The queries of a file, `{path: FILE, column: NAME, id: NAME}`, a list of texts or records, a mapping or a frame.

    Queries without ids are q1, q2, ... in their order, so that further ones at the end change no id. Other columns
    are kept, to slice scores by. Empty queries are left out, and reported.

    >>> read_queries(["Why?", "Where?"])[0]["q2"]
    'Where?'
    """
    if isinstance(source, Queries):
        return source, ()
    path, options = _named(source, "queries", ("column", "id"))
    if path is None:
        return _queries_of(_records_of(source, "queries"), {}, "the queries", [])
    place = folder / path
    notes: list[Note] = []
    if not place.exists():
        raise no_such_file(place, "file of questions")
    with errors_name(place), reading(place):
        return _queries_of(_records(place, notes, QUESTION_NAMES, options.get("column")), options, place.name, notes)


def _queries_of(
    records: Iterable[Any], options: Mapping[str, Any], where: str, notes: list[Note]
) -> tuple[Queries, tuple[Note, ...]]:
    builder = QueriesBuilder()
    names: tuple[str, str | None] | tuple[()] = ()
    texts: dict[str, tuple[str, int]] = {}
    empty: list[int] = []
    problems: list[str] = []
    count = 0
    for count, record in enumerate(records, start=1):
        row = {"question": record} if isinstance(record, str) else record
        if not isinstance(row, Mapping):
            problems.append(f"question {count:,} is {kind_of(row)}; expected text, or a record with one")
            continue
        if not names:
            names = _question_columns(row, options, where)
        text_name, id_name = names
        text = row.get(text_name)
        if text is None or (isinstance(text, str) and not text.strip()):
            empty.append(count)
            continue
        try:
            query = f"q{count}" if id_name is None else as_id(row.get(id_name), id_name)
        except InputError as error:
            problems.append(f"question {count:,}: {error}")
            continue
        if not isinstance(text, str):
            problems.append(f"question {count:,}: {text_name} is {kind_of(text)}; expected text")
        elif query in texts and texts[query][0] != text:
            problems.append(f"questions {texts[query][1]:,} and {count:,} have the id {shortened(query)!r}")
        else:
            rest = {str(name): value for name, value in row.items() if name not in names and value != ""}
            if builder.add(query, text, rest):
                texts[query] = (text, count)
    expected = "Every question needs an id of its own and a text; `column` and `id` name the columns."
    InputError.refuse(problems, f"problem in {where}", f"problems in {where}", expected)
    if not texts:
        raise InputError(f"{where} has no questions; expected one per row or line.")
    if empty:
        notes.append(note("empty-questions", count=len(empty), rows=empty[:3]))
    long = [query for query, (text, _) in texts.items() if len(text) > LONG]
    if long:
        notes.append(note("long-questions", queries=long[:3], count=len(long), longest=len(texts[long[0]][0])))
    if names and names[1] is None:
        notes.append(note("questions-have-made-ids", count=count))
    return builder.build()[0], tuple(notes)


def _question_columns(row: Mapping[str, Any], options: Mapping[str, Any], where: str) -> tuple[str, str | None]:
    """The columns of a table of questions: that of the text, and that of the id if there is one."""
    named_id = find_column(row, QUESTION_IDS, options.get("id"), "id", where)
    text = find_column(row, QUESTION_NAMES, options.get("column"), "column", where)
    if text is None:
        shown = ", ".join(map(_in_message, row))
        longest = _in_message(max(row, key=lambda name: len(str(row[name])), default="NAME"))
        raise InputError(
            f"no column of {where} holds the questions; its columns are {shown}. Call it question, or name it: "
            f"--set column={shlex.quote(longest)}, in bench.yaml queries: {{path: {where}, column: {longest}}}. A file "
            "without a header line, with one question per line, is read as plain text if its name ends in .txt."
        )
    return text, named_id


def find_column(columns: Iterable[str], usual: Sequence[str], named: Any, role: str, where: str) -> str | None:
    """The column that is named, or the first with a usual name; None if there is none."""
    listed = list(columns)
    if named is None:
        return first_named(listed, usual)
    column = first_named(listed, (str(named).strip().lower(),))
    if column is None:
        names, near = ", ".join(map(_in_message, listed)), did_you_mean(str(named), map(str, listed))
        raise InputError(f"{where} has no column {str(named)!r} (`{role}`); its columns are {names}.{near}")
    return column


def _in_message(name: Any) -> str:
    return shortened(" ".join(str(name).split()))


def read_corpus(source: Any, folder: Path = Path()) -> tuple[Corpus, tuple[Finding, ...]]:
    """The documents of a file, a folder of text files, a database, or a mapping of id to text; none for None.

    A file is corpus.jsonl, a table or JSON, also as `{path: FILE, id: NAME, text: NAME, title: NAME}`. A database is
    `{postgres: URL, table: NAME, id: NAME, text: NAME}`, and likewise sqlite, lancedb, chroma, qdrant: only read.
    """
    builder = CorpusBuilder()
    if source is None:
        return builder.build()
    store = next((name for name in STORES if isinstance(source, Mapping) and name in source), None)
    if store is not None:
        rows = looked_up("steelyard.retrievers.adapters.stored:stored_documents")(store, dict(source), folder)
        return _corpus_of(rows, f"the corpus in {store}")
    path, options = _named(source, "corpus", ("id", "text", "title"))
    if path is None and isinstance(source, Mapping):
        return Corpus.of(source), ()
    if path is None:
        return _corpus_of(_named_records(_records_of(source, "corpus"), options, "the corpus"), "the corpus")
    place = folder / path
    if not place.exists():
        raise no_such_file(place, "corpus, a file or a folder")
    with errors_name(place), reading(place):
        if place.is_dir() and not (place / "corpus.jsonl").is_file():
            return _corpus_of(_text_files(place), str(place))
        place = place / "corpus.jsonl" if place.is_dir() else place
        if bare_name(place).suffix.lower() == ".jsonl" and not options:
            read_objects(place, builder.add_record, EXPECTED_DOCUMENT)
            return builder.build()
        records = _records(place, [], DOCUMENT_TEXTS, options.get("text"))
        return _corpus_of(_named_records(records, options, place.name), place.name)


def _corpus_of(records: Iterable[dict[str, Any]], where: str) -> tuple[Corpus, tuple[Finding, ...]]:
    builder = CorpusBuilder()
    problems: list[str] = []
    count = 0
    for count, record in enumerate(records, start=1):
        try:
            builder.add_record(record)
        except InputError as error:
            problems.append(f"document {count:,}: {error}")
    expected = "Expected an id and a text in each; `id` and `text` name the columns."
    unread = f"of {where} cannot be read"
    InputError.refuse(problems, f"document {unread}", f"documents {unread}", expected)
    if not count:
        raise InputError(f"{where} has no documents.")
    return builder.build()


def _named_records(records: Iterable[Any], options: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Records with their id, text and title under the names of a corpus; ids are d1, d2, ... if there are none."""
    names: dict[str, str | None] | None = None
    for count, record in enumerate(records, start=1):
        row = {"text": record} if isinstance(record, str) else dict(record) if isinstance(record, Mapping) else {}
        if names is None:
            usual = {"_id": DOCUMENT_IDS, "text": DOCUMENT_TEXTS, "title": ("title",)}
            names = {
                role: find_column(row, usual[role], options.get(role.strip("_")), role.strip("_"), where)
                for role in usual
            }
            if names["text"] is None:
                shown = ", ".join(map(_in_message, row)) or "none"
                problem = f"no column of {where} holds the text of a document; its columns are {shown}"
                raise InputError(f"{problem}. Call it text, or name it: corpus: {{path: {where}, text: NAME}}.")
        fields = {role: row.pop(name, None) for role, name in names.items() if name is not None}
        yield {**{name: value for name, value in row.items() if value not in (None, "")}, "_id": f"d{count}", **fields}


def _text_files(folder: Path) -> Iterator[dict[str, Any]]:
    """The text files below a folder: the id is the path in it."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in TEXT_FILES and path.is_file())
    if not files:
        raise InputError(f"the folder has no corpus.jsonl and no text files ({', '.join(TEXT_FILES)}).", folder)
    for path in files:
        yield {"_id": path.relative_to(folder).as_posix(), "text": Source(path).text}


def _named(source: Any, what: str, options: Sequence[str]) -> tuple[Path | None, dict[str, Any]]:
    """The path of a source and its options; None if the source is no path."""
    if isinstance(source, Mapping) and isinstance(source.get("path"), (str, Path)):
        chosen = {str(name): value for name, value in source.items() if name != "path"}
        for name in chosen:
            if name not in options:
                near = did_you_mean(name, options)
                raise InputError(f"`{what}` has no {name!r}; expected path, {', '.join(options)}.{near}")
        return Path(source["path"]), chosen
    return (Path(source), {}) if isinstance(source, (str, Path)) else (None, {})


def _records_of(source: Any, what: str) -> Iterable[Any]:
    """The records of a list, a mapping of id to text or record, or a frame."""
    if isinstance(source, Mapping):
        records = source.items()
        return [{"_id": key, **(value if isinstance(value, Mapping) else {"text": value})} for key, value in records]
    if is_frame(source):
        return as_polars(source).to_dicts()
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return source
    raise InputError(f"`{what}` is {kind_of(source)}; expected a path, a list of texts or a mapping of id to text.")


@streams_read_once()
def _records(path: Path, notes: list[Note], usual: Sequence[str], named: str | None) -> Iterable[Any]:
    """The records of a file, by its suffix, or else by its content; a line of plain text is a record."""
    suffix = bare_name(path).suffix.lower()
    if suffix in _SPREADSHEETS:
        raise InputError("a spreadsheet; save it as CSV (or as Parquet) and name that file.", path)
    source = Source(path)
    if source.head.startswith(b"PAR1"):
        return source.parquet.to_dicts()
    if not source.start:
        raise InputError("the file is empty.", path)
    if source.start[:1] in b"[{" and suffix not in (".csv", ".tsv", ".txt"):
        return _json_records(source, suffix)
    try:
        text = source.text
    except InputError:
        if b"\0" in source.data:
            raise
        # What is not UTF-8 is read as Windows-1252, which includes Latin-1.
        notes.append(note("read-as-windows-1252", file=path.name))
        text = source.data.decode("cp1252", "replace")
    if suffix in (".csv", ".tsv"):
        return _table_rows(path, text, usual, named)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[1:] if lines and lines[0].lower() in usual else lines


def _json_records(source: Source, suffix: str) -> Iterable[Any]:
    if source.start.startswith(b"[") and suffix != ".jsonl":
        return list(source.json)
    if suffix != ".json":
        try:
            return source.jsonl
        except InputError:
            if suffix in (".jsonl", ".ndjson"):
                raise
    value = source.json if suffix == ".json" else parse_json(source.text, source.path)
    if not isinstance(value, Mapping):
        raise InputError(f"the JSON is {kind_of(value)}; expected a list, or an object of id to text.", source.path)
    lists = [inner for inner in value.values() if isinstance(inner, list)]
    return lists[0] if len(lists) == 1 else _records_of(value, "file")


def _table_rows(path: Path, text: str, usual: Sequence[str], named: str | None) -> Iterator[dict[str, str]]:
    """The rows of a table with a header; the separator is that with which a column has a known name."""
    declared = re.match(r"sep=(.)\r?\n", text)
    text = text[declared.end() :] if declared else text
    separator = declared[1] if declared else _separator(path, text.lstrip().split("\n", 1)[0], usual, named)
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=separator, strict=True)
    problems: list[tuple[int, str]] = []
    rows: list[dict[str, str]] = []
    try:
        header = [name.strip() for name in next(reader)]
        repeated = [name for name in header if header.count(name) > 1]
        if read := first_named(repeated, usual if named is None else (str(named).strip().lower(),)):
            raise InputError(f"two columns are called {read!r}; rename one of them.", path)
        for row in reader:
            if not any(cell.strip() for cell in row):
                rows += [dict.fromkeys(header, "")] if row else []
            elif len(row) == len(header):
                rows.append(dict(zip(header, row, strict=True)))
            else:
                problems.append((reader.line_num, f"{counted(len(row), 'column')}, and the header has {len(header)}"))
    except csv.Error as error:
        problems.append((reader.line_num, str(error)))
    if problems:
        raise bad_lines(path, problems, "Expected quotes around a cell that holds the separator or a line end.")
    if not rows:
        raise InputError("there is a header line and nothing else.", path)
    return iter(rows)


def _separator(path: Path, header: str, usual: Sequence[str], named: str | None) -> str:
    expected = {str(named).strip().lower()} if named is not None else set(usual)
    first = "\t" if bare_name(path).suffix.lower() == ".tsv" else ","
    candidates = sorted(_SEPARATORS, key=lambda character: (character != first, -header.count(character)))
    for separator in candidates:
        names = {name.strip().strip('"').lower() for name in header.split(separator)}
        if separator in header and names & expected:
            return separator
    most = max(candidates, key=header.count)
    return most if header.count(most) else _ONE_COLUMN
