"""JSON Schemas from the site: what PHP writes differently is repaired, what no client could use is refused."""

import functools
import re
from typing import Any, Callable, Iterator
from urllib.parse import quote, unquote

MAX_DEPTH = 30
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
ONE = {"additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then"}
MANY = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
RANGES = [("min" + rest, "max" + rest) for rest in ("imum", "Items", "Length", "Properties")]
IN_PLACE_ONE, IN_PLACE_MANY = {"else", "if", "not", "then"}, {"allOf", "anyOf", "oneOf"}


class Unusable(ValueError):
    """A schema that a client cannot use, and why."""


def number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def count(value: Any) -> bool:
    return number(value) and value >= 0 and value == int(value)


def text(value: Any) -> bool:
    return isinstance(value, str)


def names(value: Any) -> bool:
    return isinstance(value, list) and all(map(text, value)) and len(set(value)) == len(value)


def pattern(value: Any) -> bool:
    return text(value) and (r"\p" in value.lower() or compiled(value) is not None)


@functools.lru_cache(1000)
def compiled(source: str) -> re.Pattern[str] | None:
    """Compile a pattern of JavaScript. None: Python does not know its syntax, and the site decides."""
    source = re.sub(r"\(\?<(?![=!])", "(?P<", source)
    source = re.sub(r"\\.|\[(?:\\.|[^\]])*\]|\$", lambda part: r"\Z" if part[0] == "$" else part[0], source)
    try:
        return re.compile(source, re.ASCII)
    except re.error:
        return None


CHECKS: dict[str, Callable[[Any], bool]] = {
    "type": lambda v: v in TYPES if text(v) else names(v) and v != [] and set(v) <= set(TYPES),
    "enum": lambda v: isinstance(v, list) and v != [],
    "required": names,
    "pattern": pattern,
    "uniqueItems": lambda v: isinstance(v, bool),
    "multipleOf": lambda v: number(v) and v > 0,
}
CHECKS |= dict.fromkeys(("$comment", "$schema", "description", "format", "title"), text)
CHECKS |= dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), number)
CHECKS |= dict.fromkeys(("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"), count)


def clean(schema: Any, place: str, depth: int = 0) -> Any:
    """Return the schema as it reads at a place of a document, a JSON pointer that begins with #."""
    if schema == [] and isinstance(schema, list):  # how PHP writes {}
        return {}
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        raise Unusable("not a schema")
    if depth > MAX_DEPTH:
        raise Unusable("too deep")
    used = {key: value for key, value in schema.items() if value is not None or key in ("const", "default")}
    cleaned = {key: _keyword(key, value, place, depth + 1) for key, value in used.items()}
    _satisfiable(cleaned)
    return cleaned


def _keyword(key: str, value: Any, place: str, depth: int) -> Any:
    if key in NAMED:
        if not isinstance(value, dict) and value != []:
            raise Unusable(f"{key} is not an object")
        return {name: clean(part, place, depth) for name, part in dict(value).items()}
    if key in MANY or (key == "items" and isinstance(value, list) and value):
        if not isinstance(value, list) or not value:
            raise Unusable(f"{key} is not a list of schemas")
        return [clean(part, place, depth) for part in value]
    if key in ONE or key == "items":
        return clean(value, place, depth)
    if key == "dependencies":
        if not isinstance(value, dict) and value != []:
            raise Unusable("dependencies is not an object")
        return {name: part if names(part) and part else clean(part, place, depth) for name, part in dict(value).items()}
    if key == "$ref":
        if value != "#" and not str(value).startswith("#/"):
            raise Unusable("a reference leads out of the schema")
        return place + value[1:]
    if key in ("$id", "$anchor", "$dynamicRef", "$recursiveRef") or (key in CHECKS and not CHECKS[key](value)):
        raise Unusable(f"{key} cannot be used")
    return value


def _satisfiable(schema: dict[str, Any]) -> None:
    for low, high in RANGES:
        if low in schema and high in schema and schema[low] > schema[high]:
            raise Unusable(f"{low} is above {high}")
    known = schema.get("properties", {})
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    for name in schema.get("required", []):
        if known.get(name, not closed) is False:
            raise Unusable("a required property is not allowed")


def pointer(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"))


def resolve(root: Any, reference: str) -> Any:
    target = root
    for part in unquote(reference).split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        try:
            target = target[int(part)] if isinstance(target, list) else target[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise Unusable("a reference leads nowhere") from None
    if not isinstance(target, (dict, bool)):
        raise Unusable("a reference leads to no schema")
    return target


def check_references(root: dict[str, Any]) -> None:
    """Refuse references that lead nowhere, and those that lead back to themselves without going into a value."""
    done: set[int] = set()
    for part in _schemas(root):
        if "$ref" in part:
            _no_loop(root, part, (), done)


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all that it consists of."""
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            if key in NAMED or key == "dependencies":
                value = list(value.values())
            elif key not in MANY | ONE | {"items"}:
                continue
            for part in value if isinstance(value, list) else [value]:
                yield from _schemas(part)


def _no_loop(root: Any, schema: Any, path: tuple[int, ...], done: set[int]) -> None:
    if not isinstance(schema, dict) or id(schema) in done:
        return
    if id(schema) in path:
        raise Unusable("a reference leads to itself")
    path += (id(schema),)
    parts = [schema[key] for key in IN_PLACE_ONE & schema.keys()]
    parts += [part for key in IN_PLACE_MANY & schema.keys() for part in schema[key]]
    if "$ref" in schema:
        parts.append(resolve(root, schema["$ref"]))
    for part in parts:
        _no_loop(root, part, path, done)
    done.add(id(schema))
