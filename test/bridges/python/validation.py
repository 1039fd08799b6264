"""Arguments against the inputSchema of a tool: JSON Schema, Draft 7, and the tuples of 2020-12."""

import ipaddress
import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

import jsontext
from schema import compiled, number as is_number, resolve

MAX_ERRORS = 20
Error = dict[str, str]


def errors(schema: dict[str, Any], arguments: dict[str, Any]) -> list[Error]:
    """Return what is wrong with the arguments: for each value its place, what was expected and what was received."""
    found: list[Error] = []
    try:
        for error in _Checker(schema).check(schema, arguments, ""):
            found.append(error)
            if len(found) == MAX_ERRORS:
                break
    except RecursionError:
        found.append(_error("", "arguments that are nested less deeply", "more"))
    return found


def _error(place: str, expected: str, received: str) -> Error:
    return {"parameter": place or "arguments", "expected": expected, "received": received}


TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: is_number(v) and (isinstance(v, int) or v.is_integer()),
    "number": is_number,
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def type_of(value: Any) -> str:
    return next(name for name, is_type in TYPES.items() if is_type(value))


def canonical(value: Any) -> Any:
    """A value that is equal to that of another value if JSON Schema takes the two for equal: 1 is 1.0, but not true."""
    if isinstance(value, dict):
        return "object", frozenset((name, canonical(member)) for name, member in value.items())
    if isinstance(value, list):
        return "array", tuple(map(canonical, value))
    return "number" if is_number(value) else type_of(value), value


class _Checker:
    def __init__(self, root: dict[str, Any]):
        self.root = root

    def valid(self, schema: Any, value: Any) -> bool:
        return next(self.check(schema, value, ""), None) is None

    def check(self, schema: Any, value: Any, place: str) -> Iterator[Error]:
        if schema is True:
            return
        if schema is False:
            yield _error(place, "no value", type_of(value))
            return
        if "$ref" in schema:
            yield from self.check(resolve(self.root, schema["$ref"]), value, place)
            return
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and not any(TYPES[name](value) for name in types):
            yield _error(place, " or ".join(types), type_of(value))
            return
        for expected in self._broken(schema, value):
            yield _error(place, expected, jsontext.encode(value)[:100])
        if isinstance(value, dict):
            yield from self._object(schema, value, place)
        elif isinstance(value, list):
            yield from self._array(schema, value, place)
        for part in schema.get("allOf", []):
            yield from self.check(part, value, place)
        if "if" in schema:
            branch = "then" if self.valid(schema["if"], value) else "else"
            yield from self.check(schema.get(branch, True), value, place)

    def _broken(self, schema: dict[str, Any], value: Any) -> Iterator[str]:
        """What the keywords expect that say something about one value."""
        if "enum" in schema and canonical(value) not in map(canonical, schema["enum"]):
            yield "one of " + jsontext.encode(schema["enum"])[:200]
        if "const" in schema and canonical(value) != canonical(schema["const"]):
            yield jsontext.encode(schema["const"])[:200]
        if is_number(value):
            yield from _bounds(schema, value, "minimum", "maximum", "")
            if value <= schema.get("exclusiveMinimum", -float("inf")):
                yield f"more than {schema['exclusiveMinimum']}"
            if value >= schema.get("exclusiveMaximum", float("inf")):
                yield f"less than {schema['exclusiveMaximum']}"
            if "multipleOf" in schema and not _multiple(value, schema["multipleOf"]):
                yield f"a multiple of {schema['multipleOf']}"
        if isinstance(value, str):
            yield from _bounds(schema, len(value), "minLength", "maxLength", " characters")
            pattern = compiled(schema["pattern"]) if "pattern" in schema else None
            if pattern and not pattern.search(value):
                yield f"text that matches {schema['pattern']}"
            if not FORMATS.get(schema.get("format", ""), lambda text: True)(value):
                yield schema["format"]
        if isinstance(value, list):
            yield from _bounds(schema, len(value), "minItems", "maxItems", " items")
            if schema.get("uniqueItems") and len(set(map(canonical, value))) < len(value):
                yield "different items"
            if "contains" in schema and not any(self.valid(schema["contains"], item) for item in value):
                yield "an item of another kind"
        if isinstance(value, dict):
            yield from _bounds(schema, len(value), "minProperties", "maxProperties", " members")
        if "anyOf" in schema and not any(self.valid(part, value) for part in schema["anyOf"]):
            yield "a value that one of the alternatives allows"
        if "oneOf" in schema and sum(self.valid(part, value) for part in schema["oneOf"]) != 1:
            yield "a value that exactly one of the alternatives allows"
        if "not" in schema and self.valid(schema["not"], value):
            yield "another value"

    def _object(self, schema: dict[str, Any], value: dict[str, Any], place: str) -> Iterator[Error]:
        within = lambda name: f"{place}.{name}" if place else name
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield _error(within(name), "a value", "nothing")
        for name, member in value.items():
            parts = [properties[name]] if name in properties else []
            parts += [part for source, part in patterns.items() if (p := compiled(source)) and p.search(name)]
            for part in parts or [schema.get("additionalProperties", True)]:
                yield from self.check(part, member, within(name))
            if not self.valid(schema.get("propertyNames", True), name):
                yield _error(within(name), "another name", jsontext.encode(name)[:100])
        for name, needed in schema.get("dependencies", {}).items():
            if name in value and isinstance(needed, list):
                yield from (_error(within(other), "a value", "nothing") for other in needed if other not in value)
            elif name in value:
                yield from self.check(needed, value, place)

    def _array(self, schema: dict[str, Any], value: list[Any], place: str) -> Iterator[Error]:
        items, rest = schema.get("items", True), schema.get("additionalItems", True)
        tuple_, rest = (items, rest) if isinstance(items, list) else (schema.get("prefixItems", []), items)
        for index, item in enumerate(value):
            yield from self.check(tuple_[index] if index < len(tuple_) else rest, item, f"{place}.{index}")


def _bounds(schema: dict[str, Any], size: Any, least: str, most: str, unit: str) -> Iterator[str]:
    if least in schema and size < schema[least]:
        yield f"at least {schema[least]}{unit}"
    if most in schema and size > schema[most]:
        yield f"at most {schema[most]}{unit}"


def _multiple(value: Any, step: Any) -> bool:
    try:
        return Decimal(str(value)) % Decimal(str(step)) == 0
    except InvalidOperation:  # more digits than Decimal divides
        return isinstance(value, int) and isinstance(step, int) and value % step == 0


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE) is not None


def _parses(parse: Callable[[str], Any], pattern: str = r"[\x21-\x7e]+") -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return _matches(pattern)(text) and parse(text) is not None
        except ValueError:
            return False

    return check


def _instant(text: str) -> datetime:
    text = re.sub(r"\.\d+", "", text.upper().replace("Z", "+00:00"))
    if text[17:19] == "60":  # a leap second
        text = text[:17] + "59" + text[19:]
    return datetime.fromisoformat(text)


LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
DATE, TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(\.\d+)?(z|[+-]\d\d:\d\d)"
FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _parses(date.fromisoformat, DATE),
    "date-time": _parses(_instant, f"{DATE}t{TIME}"),
    "time": _parses(lambda text: _instant("2000-01-01T" + text), TIME),
    "email": _matches(rf"[^\s@\"(),:;<>\[\]\\]+@{LABEL}(\.{LABEL})*"),
    "hostname": _matches(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*"),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address, r"[0-9a-f:.]+"),
    "uri": _parses(urlsplit, r"[a-z][a-z0-9+.-]*:[\x21-\x7e]+"),
    "uuid": _matches(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
}
