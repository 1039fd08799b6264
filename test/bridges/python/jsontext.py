"""Strict JSON. Values that only pass through keep their text, so that no number is rounded and no order changes."""

import json
from json.decoder import WHITESPACE, scanstring
from typing import Any


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member name is repeated")
    return members


_decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unique)


def decode(data: bytes) -> tuple[Any, str]:
    """Return the value and the text of a document. Raise ValueError if it is not strict JSON."""
    try:
        text = data.decode("utf-8")
        return _decoder.decode(text), text
    except RecursionError:
        raise ValueError("nested too deeply") from None


def members(text: str) -> dict[str, str]:
    """Return the text of each member of an object that decode has accepted."""
    found: dict[str, str] = {}
    at = _skip(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = scanstring(text, at + 1)
        start = _skip(text, _skip(text, at) + 1)  # behind the colon
        _, end = _decoder.scan_once(text, start)
        found[name] = text[start:end]
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    return WHITESPACE.match(text, at).end()  # type: ignore[union-attr]


def encode(value: Any) -> str:
    """Write a value. Everything beyond ASCII is escaped: a lone surrogate cannot be written in UTF-8."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
