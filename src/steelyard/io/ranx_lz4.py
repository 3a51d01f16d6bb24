"""ranx .lz4 files: `{query: {document: number}}` as CBOR, in an LZ4 frame that is itself in an LZ4 frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import Source, compress, run_name, unpack_lz4
from steelyard.io.lists import qrels_of_lists, run_of_lists
from steelyard.io.ranx import grades_of, scores_of

if TYPE_CHECKING:
    from steelyard.qrels import Qrels
    from steelyard.run import Run


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run; ordered by its scores."""
    check_roles(columns, (), "a ranx file")
    content = content_of(source)
    return run_of_lists(list(content), list(content.values()), None, run_name(source.path))


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments."""
    check_roles(columns, (), "a ranx file")
    content = content_of(source)
    return qrels_of_lists(list(content), list(content.values()))


def run_bytes(run: Run) -> bytes:
    """The scores, packed twice, as ranx does."""
    return _packed(scores_of(run))


def qrels_bytes(qrels: Qrels) -> bytes:
    """The grades, packed twice."""
    return _packed(grades_of(qrels))


def content_of(source: Source) -> dict[str, Any]:
    """What the file holds, unpacked."""
    cbor = _cbor()
    try:
        content = cbor.loads(unpack_lz4(source.data, source.path))
    except cbor.CBORDecodeError as error:
        raise InputError(f"{source.path} is not as ranx writes it ({error}); get a whole copy.") from None
    if not isinstance(content, dict) or not all(isinstance(value, dict) for value in content.values()):
        raise InputError(f"{source.path} does not hold {{query: {{document: number}}}}, as a ranx file does.")
    return content


def _packed(content: Any) -> bytes:
    packed: bytes = _cbor().dumps(content)
    return compress(compress(packed, "lz4"), "lz4")


def _cbor() -> Any:
    try:
        import cbor2
    except ImportError:
        raise InputError(
            "ranx .lz4 files need the package cbor2: pip install 'steelyard[lz4]', or save the run as JSON."
        ) from None
    return cbor2
