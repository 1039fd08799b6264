"""The tools of one caller, made from the site's methods, and the cache of them."""

import hashlib
import re
import sys
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Callable
from weakref import WeakValueDictionary

import jsontext
import schema
from failure import Failure
from upstream import Caller, unusable

MAX_SCHEMA = 64 << 10
MAX_CALLERS = 1000


@dataclass(frozen=True)
class Tool:
    name: str
    text: str  # as list and describe show it
    input_schema: dict[str, Any]


class Catalog:
    """An immutable set of tools, encoded once."""

    def __init__(self, body: bytes):
        try:
            document, _ = jsontext.decode(body)
        except ValueError:
            raise unusable() from None
        if not isinstance(document, dict) or not isinstance(document.get("data"), list):
            raise unusable()
        self.tools: dict[str, Tool] = {}
        for method in document["data"]:
            try:
                tool = translate(method)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
                print(f"no tool: {_id(method)!r}: {problem}", file=sys.stderr)
                continue
            if tool:
                self.tools.setdefault(tool.name, tool)
        self.texts = [tool.text for tool in self.tools.values()]
        self.version = hashlib.sha256("\n".join(self.texts).encode()).hexdigest()[:16]
        mcp = (document.get("meta") or {}).get("mcp") or {}
        self.may_discover = mcp.get("discovery") is not False

    def page(self, cursor: str, size: int) -> str:
        """Return a page of the list. A cursor is a version and an offset: it is of no use for another list."""
        start = 0
        if cursor:
            match = re.fullmatch(r"([0-9a-f]{16})\.([0-9]{1,9})", cursor)
            start = int(match[2]) if match and match[1] == self.version else 0
            if not 0 < start < len(self.texts):
                raise Failure(400, "invalid_cursor", "The cursor is not of this list. Start again without a cursor.")
        end = start + size
        following = f',"nextCursor":"{self.version}.{end}"' if end < len(self.texts) else ""
        return f'{{"tools":[{",".join(self.texts[start:end])}]{following}}}'

    def find(self, name: str) -> Tool:
        if name not in self.tools:
            raise Failure(404, "tool_not_found", f"There is no tool named {name}.")
        return self.tools[name]


def _id(method: Any) -> Any:
    return method.get("id") if isinstance(method, dict) else method


def translate(method: dict[str, Any]) -> Tool | None:
    """Return a method as a tool, None if it is not marked as one. Raise an error if it cannot become one."""
    name, attributes = method["id"], method["attributes"] or {}
    mark = attributes.get("mcpTool")
    if mark is None:
        return None
    if not isinstance(name, str) or not name:
        raise ValueError("the id is not a name")
    mark = mark or {}  # PHP writes {} as []
    title, annotations = mark.get("title"), mark.get("annotations")
    tool: dict[str, Any] = {"name": name}
    if isinstance(title, str) and title:
        tool["title"] = title
    tool["description"] = attributes.get("usage") or tool.get("title") or name
    tool["inputSchema"] = input_schema(attributes.get("params") or {})
    if isinstance(attributes.get("output"), (dict, list)):
        try:
            output = schema.clean(attributes["output"], "#")
            schema.check_references(output)
            tool["outputSchema"] = output
        except schema.Unusable as problem:
            print(f"no output schema: {name!r}: {problem}", file=sys.stderr)
    if annotations and isinstance(annotations, dict):
        tool["annotations"] = annotations
    text = jsontext.encode(tool)
    if len(text) > MAX_SCHEMA and len(jsontext.encode(tool["inputSchema"])) > MAX_SCHEMA:
        raise ValueError("the schema is too large")
    return Tool(name, text, tool["inputSchema"])


def input_schema(params: Any) -> dict[str, Any]:
    if not isinstance(params, dict):
        raise ValueError("the parameters are by position")
    result: dict[str, Any] = {"type": "object", "properties": {}}
    required, dialects = [], set()
    for name, param in params.items():
        attributes = param.get("attributes") or {}
        shape = schema.clean(param["schema"], f"#/properties/{schema.pointer(name)}")
        needed = attributes.get("required") is True
        if shape is False and needed:
            raise ValueError(f"nothing satisfies {name}")
        if isinstance(shape, dict):
            dialects.add(shape.pop("$schema", None))
        description = attributes.get("description")
        if isinstance(description, str) and description:
            shape = shape if isinstance(shape, dict) else ({} if shape else {"not": {}})
            shape["description"] = description
        result["properties"][name] = shape
        if needed:
            required.append(name)
    if required:
        result["required"] = required
    if len(dialects) > 1:
        raise ValueError("the parameters are of several dialects")
    for dialect in dialects - {None}:
        result["$schema"] = dialect
    schema.check_references(result)
    return result


@dataclass
class Entry:
    catalog: Catalog
    fresh_until: float


class Cache:
    """A catalog for each caller. Callers who ask at the same time share one request to the site."""

    def __init__(self, fetch: Callable[[Caller], bytes], ttl: float, clock: str = ""):
        self.fetch, self.ttl, self.clock = fetch, ttl, clock
        self.building = threading.Lock()
        self.built: WeakValueDictionary[bytes, Catalog] = WeakValueDictionary()  # by the hash of the site's bytes
        self.lock = threading.Lock()
        self.entries: OrderedDict[Caller, Entry] = OrderedDict()
        self.flights: dict[Caller, Future[Catalog]] = {}

    def get(self, caller: Caller) -> tuple[Catalog, bool]:
        """Return the caller's catalog, and whether it is an old one that stands in for a site that fails."""
        with self.lock:
            entry = self.entries.get(caller)
            if entry and self.now() < entry.fresh_until:
                return entry.catalog, False
            flight = self.flights.get(caller)
            mine = flight is None
            if flight is None:
                flight = self.flights[caller] = Future()
        if mine:
            self._fly(caller, flight)
        try:
            return flight.result(), False
        except Failure as failure:
            if entry and failure.status >= 500:
                return entry.catalog, True
            raise

    def now(self) -> float:
        """Return the seconds that a TTL is counted in. A test moves them by a file, so that it need not wait."""
        if not self.clock:
            return time.monotonic()
        with open(self.clock) as ahead:
            return time.monotonic() + float(ahead.read())

    def expire(self, caller: Caller) -> None:
        with self.lock:
            if caller in self.entries:
                self.entries[caller].fresh_until = 0

    def _build(self, body: bytes) -> Catalog:
        """Callers with the same permissions share a catalog: building one takes long."""
        key = hashlib.sha256(body).digest()
        with self.building:
            catalog = self.built.get(key)
            if catalog is None:
                catalog = self.built[key] = Catalog(body)
            return catalog

    def _fly(self, caller: Caller, flight: "Future[Catalog]") -> None:
        started = self.now()
        try:
            catalog = self._build(self.fetch(caller))
        except BaseException as problem:
            with self.lock:
                del self.flights[caller]
                if isinstance(problem, Failure) and problem.status < 500:
                    self.entries.pop(caller, None)
            flight.set_exception(problem)
            return
        with self.lock:
            del self.flights[caller]
            self.entries[caller] = Entry(catalog, started + self.ttl)
            self.entries.move_to_end(caller)
            if len(self.entries) > MAX_CALLERS:
                self.entries.popitem(last=False)
        flight.set_result(catalog)
