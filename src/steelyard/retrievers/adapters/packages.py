"""Other people's packages: loaded when first used, and where one is missing, the line that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from steelyard.retrievers.base import RetrieverError


def package(module: str, extra: str, who: str) -> Any:
    """The module, or an error that names the extra that brings it.

    >>> package("json", "langchain", "my retriever").dumps(1)
    '1'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise RetrieverError(
                f"{who}: the package {module.split('.')[0]} is there, but {error.name} that it needs is not: "
                f"pip install --upgrade 'steelyard[{extra}]'"
            ) from None
        raise RetrieverError(
            f"{who} needs the package {module.split('.')[0]}: pip install 'steelyard[{extra}]'"
        ) from None
