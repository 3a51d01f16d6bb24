"""Secrets: read from the environment, recognised by name, and replaced in everything that is shown or written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

from steelyard.errors import InputError, SteelyardError

MASK = "***"

_SHORTEST, _LONG = 4, 8
"""Shorter values are not replaced in messages. Those shorter than the second one are replaced only as whole words,
and not if they are letters only: `key: title` must not change every message with a title."""

_LAST_WORDS = {"key", "token", "auth", "credential", "credentials", "pwd"}
_WORDS = {"apikey", "secret", "password", "passwd", "passphrase", "authorization"}
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_USER = re.compile(r"(?<=://)[^/\s'\"]+(?=@)")
_OF_USER = re.compile(r"://[^/\s@:\[]*:(?!\d*/)([^\s@]+)@")  # a password with characters that a URL has to quote
_PASSWORD = re.compile(r"\b((?:ssl)?password|pwd)\s*=\s*('[^']*'|[^\s'\";&${]+)", re.IGNORECASE)
_PARAMETER = re.compile(r"([?&])([\w.-]+)=([^&\s'\"]+)")
_SCHEME = re.compile(r"\b(Bearer|Basic) +([\w.~+/=-]{4,})", re.IGNORECASE)

_known: dict[str, str] = {}


def is_secret_name(name: Any) -> bool:
    """Whether a setting, parameter or variable of this name holds a secret.

    >>> [is_secret_name(name) for name in ("api_key", "X-Auth-Token", "dbPassword", "max_tokens", "key_field")]
    [True, True, True, False, False]
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name)).lower()
    parts = [part for part in re.split(r"[^a-z0-9]+", words) if part]
    return bool(parts) and (parts[-1] in _LAST_WORDS or not _WORDS.isdisjoint(parts))


def remember(secret: str, shown: str = MASK) -> None:
    """Replace a value by `shown` in all messages from now on."""
    word = len(secret) < _LONG and secret.isalpha()
    if len(secret) >= _SHORTEST and not word:
        _known.update(dict.fromkeys((secret, quote(secret, safe=""), unquote(secret)), shown))


def remember_settings(settings: Any, secret: bool = False) -> None:
    """Remember the values of settings whose names are those of secrets, of all headers, and of secrets in URLs."""
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            remember_settings(value, secret or is_secret_name(name) or name == "headers")
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            remember_settings(value, secret)
    elif isinstance(settings, str):
        secrets = [value for _, name, value in _PARAMETER.findall(settings) if is_secret_name(name)]
        secrets += [value.strip("'") for _, value in _PASSWORD.findall(settings)]
        of_users = [user.partition(":")[2] for user in _USER.findall(settings)] + _OF_USER.findall(settings)
        # Libraries that split such a URL at another place show a part of the password. A port is none.
        parts = [re.split("[@/?#]", re.sub(r"^\d{1,5}[?#]", "", value)) for value in of_users]
        secrets += chain(of_users, *parts)
        if secret:
            secrets += [settings, settings.partition(" ")[2]]
        for value in secrets:
            if not _VARIABLE.search(value):
                remember(value)


def masked(text: str) -> str:
    """A text without secrets: known values, users in URLs, parameters of URLs by name, and bearer tokens.

    >>> masked("http://me:word@localhost/?q=fox&api_key=1234 with Bearer abcdef")
    'http://***@localhost/?q=fox&api_key=*** with Bearer ***'
    """
    for secret in sorted(_known, key=len, reverse=True):
        if secret in text:
            pattern = re.escape(secret) if len(secret) >= _LONG else rf"(?<!\w){re.escape(secret)}(?!\w)"
            text = re.sub(pattern, lambda _, shown=_known[secret]: shown, text)  # type: ignore[misc]
    text = _PASSWORD.sub(rf"\1={MASK}", _USER.sub(MASK, text))
    return _SCHEME.sub(rf"\1 {MASK}", _PARAMETER.sub(_masked_parameter, text))


def _masked_parameter(match: re.Match[str]) -> str:
    mark, name, value = match.groups()
    return f"{mark}{name}={MASK}" if is_secret_name(name) and value[0] not in "{$" else match[0]


def masked_settings(settings: Any, name: Any = "") -> Any:
    """Settings as they are shown and written: a secret is `***`, a variable of the environment its name.

    >>> masked_settings({"api_key": "abc", "token": "${TOKEN}", "size": 3, "of": [{"password": "x"}]})
    {'api_key': '***', 'token': '${TOKEN}', 'size': 3, 'of': [{'password': '***'}]}
    """
    if isinstance(settings, str) and _VARIABLE.search(settings):
        return masked(settings)
    if settings is not None and is_secret_name(name):
        return MASK
    if isinstance(settings, Mapping):
        return {key: masked_settings(value, key) for key, value in settings.items()}
    if isinstance(settings, (list, tuple)):
        return [masked_settings(value) for value in settings]
    return masked(settings) if isinstance(settings, str) else settings


def from_environment(value: Any, label: str, error: type[SteelyardError] = InputError) -> Any:
    """The value with every ${VARIABLE} in its texts replaced from the environment, so that secrets are not in files.

    >>> import os; os.environ["STEELYARD_DOCTEST"] = "doctest-secret"
    >>> from_environment({"headers": ["Bearer ${STEELYARD_DOCTEST}", 3]}, "http")
    {'headers': ['Bearer doctest-secret', 3]}
    """

    def read(match: re.Match[str]) -> str:
        variable = match[1]
        if variable not in os.environ:
            raise error(f"{label}: the environment variable {variable} of {match[0]} is not set.")
        remember_settings(os.environ[variable])
        remember(os.environ[variable], match[0])
        return os.environ[variable]

    return _replaced(value, lambda text, _: _VARIABLE.sub(read, text))


def identifying(settings: Any) -> Any:
    """Settings as they identify a result: with the values of variables that are not secrets, which may be replaced."""

    def read(match: re.Match[str]) -> str:
        return match[0] if is_secret_name(match[1]) else os.environ.get(match[1], match[0])

    return _replaced(settings, lambda text, name: text if is_secret_name(name) else _VARIABLE.sub(read, text))


def _replaced(value: Any, replace: Callable[[str, Any], str], name: Any = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(part, replace, key) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(part, replace, name) for part in value]
    return replace(value, name) if isinstance(value, str) else value
