"""From the methods of the site to tools."""

import re
import sys
from urllib.parse import unquote

_reported = set()


def tools_of(methods):
    """The tools among the methods, by name. One that cannot be translated does not cost the others (translate/one-bad-tool)."""
    tools = {}
    for method in methods:
        try:
            if "mcpTool" in method["attributes"]:  # list/only-marked-methods
                tools[method["id"]] = _tool(method["id"], method["attributes"])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if method.get("id") not in _reported:
                print(f"{method.get('id')} is left out: {error!r}", file=sys.stderr)
            _reported.add(method.get("id"))
    return tools


def _tool(name, attributes):
    marked = attributes["mcpTool"] or {}  # empty counts, too
    title = marked.get("title")
    tool = {
        "name": name,
        "description": attributes.get("usage") or title or name,
        "inputSchema": _input_schema(attributes.get("params") or {}),
    }
    if title:
        tool["title"] = title
    if attributes.get("output"):
        tool["outputSchema"] = usable(attributes["output"])
    if isinstance(marked.get("annotations"), dict):  # PHP writes [] for none (list/tool-optional-members)
        tool["annotations"] = marked["annotations"]
    return tool


def _input_schema(params):
    if isinstance(params, list):
        raise ValueError("it takes its parameters by position")  # mapping/by-position
    schema = {"type": "object", "properties": {}}
    for name, param in params.items():
        attributes = param.get("attributes") or {}
        schema["properties"][name] = usable(param["schema"])
        if attributes.get("description"):
            schema["properties"][name] = {**usable(param["schema"]), "description": attributes["description"]}
        if attributes.get("required"):  # mapping/required-exact
            schema.setdefault("required", []).append(name)
    return schema


_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


def _is_count(value):
    return type(value) is int and value >= 0


# What the value of a keyword has to be (schema/input-valid).
_VALUES = {
    "type": lambda value: _TYPES.issuperset(value if isinstance(value, list) else [value]),
    "enum": lambda value: isinstance(value, list) and value,
    "required": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(("title", "description", "format", "pattern"), lambda value: isinstance(value, str)),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), lambda value: type(value) in (int, float)
    ),
    **{bound + what: _is_count for bound in ("min", "max") for what in ("Length", "Items", "Properties")},
}
# Which keywords hold schemas: by name, as a list, or one.
_MAPS = ("properties", "patternProperties", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf", "items")
_ONE = ("items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else")


def usable(root):
    """The schema as every client can use it: references replaced by what they refer to, and PHP's [] by {} where a schema or
    a map stands. It raises if that cannot be had: one that is null, cyclic, or refers to elsewhere (translate/one-bad-tool)."""
    size = 0

    def walk(schema, depth=0):
        nonlocal size
        if isinstance(schema, bool):
            return schema
        if schema == []:
            return {}
        if not isinstance(schema, dict):
            raise ValueError("a schema is no object")
        size += 1
        if depth > 30 or size > 2000:
            raise ValueError("a schema is cyclic or too large")  # schema/bounded
        if "$ref" in schema:
            return walk(_target(root, schema["$ref"]), depth + 1)
        # Nothing refers to the definitions now.
        made = {key: value for key, value in schema.items() if key not in ("definitions", "$defs")}
        for key, value in made.items():
            if key in _VALUES and not _VALUES[key](value):
                raise ValueError(f"a schema has a wrong {key}")
        for key in _MAPS:
            if key in made:
                made[key] = {
                    name: value if key == "dependencies" and isinstance(value, list) else walk(value, depth + 1)
                    for name, value in (made[key] or {}).items()
                }
        for key in _LISTS:
            if made.get(key) and isinstance(made[key], list):
                made[key] = [walk(value, depth + 1) for value in made[key]]
        for key in _ONE:
            if isinstance(made.get(key), dict) or made.get(key) == []:
                made[key] = walk(made[key], depth + 1)
        if made.get("type") == "array":
            made.setdefault("items", {})  # profile/array-items
        return made

    return walk(root)


def _target(root, ref):
    if not re.fullmatch(r"#(/.*)?", ref):  # schema/no-remote-ref
        raise ValueError(f"a schema refers to {ref}")
    for part in unquote(ref).split("/")[1:]:
        root = root[int(part) if isinstance(root, list) else part.replace("~1", "/").replace("~0", "~")]
    return root
