"""JSON as the contract reads it: stricter than the module json is by itself."""

import json


def parse(data):
    """Parses bytes, or raises ValueError. Integers of any size stay what they are (invoke/arguments-forwarded)."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_members, parse_float=_finite, parse_constant=_refuse)
    except RecursionError:  # invoke/large-body
        raise ValueError("it is nested too deep") from None


def encode(value):
    return json.dumps(value, separators=(",", ":")).encode()


def _members(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):  # invoke/duplicate-members
        raise ValueError("a member is repeated")
    return members


def _finite(text):
    number = float(text)
    if number - number != 0:
        raise ValueError(f"{text} is too large")
    return number


def _refuse(text):
    raise ValueError(f"{text} is not JSON")
