"""The site's methods become tools."""
import copy, hashlib, re, sys
from decimal import Decimal
from urllib.parse import unquote
from util import pattern, jbytes, args_validator, Loose, Args, fmt

TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
SCHEMA = {"additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not"}
MAPS = {"properties", "patternProperties"}
LISTS = {"allOf", "anyOf", "oneOf"}
COUNTS = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
NUMBERS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
TEXTS = {"title", "description", "$comment", "format", "contentMediaType", "contentEncoding"}
BOOLS = {"uniqueItems", "readOnly", "writeOnly"}
DROP = {"definitions", "$defs", "$schema", "$id", "$anchor", "$ref"}

# configured rules for custom field types
CUSTOM = {"geofield": {"type": "object", "properties": {"lat": {"type": "number", "minimum": -90, "maximum": 90},
                                                        "lon": {"type": "number", "minimum": -180, "maximum": 180}},
                       "required": ["lat", "lon"]}}


def log(*a):
    print(*a, file=sys.stderr, flush=True)


class Untranslatable(Exception):
    pass


def isnum(v):
    return isinstance(v, (int, float, Decimal)) and not isinstance(v, bool)


class Fixer:
    def __init__(self, root, enums, notes):
        self.root, self.enums, self.notes, self.nodes = root, enums, notes, 0

    def resolve(self, ref):
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        p = unquote(ref[1:])
        if p == "":
            return self.root
        if not p.startswith("/"):
            return None
        v = self.root
        for part in p[1:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(v, dict) and part in v:
                v = v[part]
            elif isinstance(v, list) and part.isdigit() and int(part) < len(v):
                v = v[int(part)]
            else:
                return None
        return v if isinstance(v, (dict, bool)) or v == [] else None

    def fix(self, s, depth=0, trail=()):
        self.nodes += 1
        if self.nodes > 4000:
            raise Untranslatable("its schema is too large")
        if s is True or s is False:
            return s
        if s == [] or s is None:
            if s is None:
                self.notes.append("a schema is null")
            return {}
        if not isinstance(s, dict):
            self.notes.append("a schema is no object")
            return {}
        if depth > 26:
            self.notes.append("a schema is cut below 26 levels")
            out = {"$comment": "more levels are left out"}
            if s.get("type") in TYPES:
                out["type"] = s["type"]
            return out
        if "$ref" in s:
            ref = s["$ref"]
            target = self.resolve(ref)
            if target is None or ref in trail:
                self.notes.append("a reference is replaced by {}")
                out = {}
                if isinstance(s.get("description"), str):
                    out["description"] = s["description"]
                return out
            out = self.fix(target, depth, trail + (ref,))
            if isinstance(s.get("description"), str) and isinstance(out, dict):
                out = dict(out, description=s["description"])
            return out
        t = s.get("type")
        if isinstance(t, str) and t not in TYPES or "cardinality" in s or "settings" in s and isinstance(t, str):
            return self.drupal(s)
        out, hoist = {}, []
        for k, v in s.items():
            if k in DROP:
                continue
            if k == "type":
                if isinstance(v, str):
                    out[k] = v
                elif isinstance(v, list):
                    ts = list(dict.fromkeys(x for x in v if isinstance(x, str) and x in TYPES))
                    if ts:
                        out[k] = ts
            elif k == "items":
                if isinstance(v, list) and v:
                    out[k] = [self.fix(x, depth + 2, trail) for x in v]
                else:
                    out[k] = self.fix(v, depth + 1, trail)
            elif k in SCHEMA:
                out[k] = self.fix(v, depth + 1, trail)
            elif k in MAPS:
                if v == [] or v is None:
                    out[k] = {}
                elif isinstance(v, dict):
                    m = {}
                    for n, x in v.items():
                        if k == "patternProperties" and pattern(n) is None:
                            continue
                        if k == "properties" and isinstance(x, dict) and x.get("required") is True:
                            hoist.append(n)
                        m[n] = self.fix(x, depth + 2, trail)
                    out[k] = m
                else:
                    out[k] = {}
            elif k == "dependencies":
                if isinstance(v, dict):
                    out[k] = {n: (list(x) if isinstance(x, list) and x else self.fix(x, depth + 2, trail)) for n, x in v.items()}
            elif k in LISTS:
                if isinstance(v, list) and v:
                    out[k] = [self.fix(x, depth + 2, trail) for x in v]
            elif k == "required":
                if isinstance(v, list):
                    r = list(dict.fromkeys(x for x in v if isinstance(x, str)))
                    if r:
                        out[k] = r
            elif k == "enum":
                if isinstance(v, list) and v:
                    out[k] = v
            elif k in COUNTS:
                if isnum(v) and v == int(v) and v >= 0:
                    out[k] = int(v)
            elif k in NUMBERS:
                if isnum(v):
                    out[k] = v
                elif v is True and k.startswith("exclusive"):
                    b = s.get(k[9:].lower())
                    if isnum(b):
                        out[k] = b
            elif k == "multipleOf":
                if isnum(v) and v > 0:
                    out[k] = v
            elif k == "pattern":
                if isinstance(v, str) and pattern(v) is not None:
                    out[k] = v
            elif k in TEXTS:
                if isinstance(v, str):
                    out[k] = v
            elif k in BOOLS:
                if isinstance(v, bool):
                    out[k] = v
            elif k == "examples":
                if isinstance(v, list):
                    out[k] = v
            else:
                out[k] = v
        for b in ("Minimum", "Maximum"):
            if s.get("exclusive" + b) is True and "exclusive" + b in out:
                out.pop(b.lower(), None)
        if hoist:
            out["required"] = list(dict.fromkeys(out.get("required", []) + hoist))
        ts = out.get("type")
        if "enum" in out and ts is not None:
            ok = [x for x in out["enum"] if Args({"type": ts}).is_valid(x)]
            if ok:
                out["enum"] = ok
        if ts == "array" or isinstance(ts, list) and "array" in ts:
            out.setdefault("items", {})
        return out

    def drupal(self, s):
        t = s.get("type")
        st = s.get("settings")
        st = st if isinstance(st, dict) else {}
        if t in CUSTOM:
            one = copy.deepcopy(CUSTOM[t])
        else:
            one = self.field(t, st, s)
        card = s.get("cardinality", 1)
        if isinstance(card, int) and not isinstance(card, bool) and card != 1:
            one = {"type": "array", "items": one}
            if card > 1:
                one["maxItems"] = card
        if isinstance(s.get("description"), str):
            d = s["description"]
            one["description"] = d + (" " + one["description"] if "description" in one else "")
        if "default" in s:
            one["default"] = s["default"]
        if isinstance(s.get("title"), str):
            one["title"] = s["title"]
        return one

    def field(self, t, st, s):
        def bounds(o):
            if isnum(st.get("min")):
                o["minimum"] = st["min"]
            if isnum(st.get("max")):
                o["maximum"] = st["max"]
            if st.get("unsigned") is True:
                o["minimum"] = max(o.get("minimum", 0), 0)
            for k in NUMBERS:
                if isnum(s.get(k)):
                    o[k] = s[k]
            return o

        def length(o):
            if isnum(st.get("max_length")):
                o["maxLength"] = int(st["max_length"])
            return o

        def values(o, conv):
            av = st.get("allowed_values")
            out = []
            if isinstance(av, dict):
                av = [{"value": k} for k in av]
            for x in av if isinstance(av, list) else ():
                v = x.get("value") if isinstance(x, dict) else x
                try:
                    out.append(conv(v))
                except (TypeError, ValueError):
                    pass
            if out:
                o["enum"] = out
            return o

        def asnum(v):
            return v if isnum(v) else (int(v) if re.fullmatch(r"-?\d+", v) else float(v))
        when = "date" if st.get("datetime_type") == "date" else "date-time"
        if t == "boolean":
            return {"type": "boolean"}
        if t in ("integer", "timestamp"):
            return bounds({"type": "integer"})
        if t in ("changed", "created"):
            return {"type": "integer"}
        if t in ("decimal", "float", "number"):
            return bounds({"type": "number"})
        if t == "email":
            return length({"type": "string", "format": "email"})
        if t == "uri":
            return length({"type": "string", "format": "uri"})
        if t in ("string", "string_long", "telephone"):
            return length({"type": "string"})
        if t == "list_string":
            return values({"type": "string"}, str)
        if t == "list_integer":
            return values({"type": "integer"}, int)
        if t == "list_float":
            return values({"type": "number"}, asnum)
        if t == "datetime":
            return {"type": "string", "format": when}
        if t == "daterange":
            p = {"value": {"type": "string", "format": when}, "end_value": {"type": "string", "format": when}}
            return {"type": "object", "properties": p, "required": ["value", "end_value"]}
        if t in ("text_formatted", "text", "text_long", "text_with_summary"):
            p = {"value": length({"type": "string"}), "format": {"type": "string"}}
            if t == "text_with_summary":
                p["summary"] = {"type": "string"}
            if isinstance(st.get("allowed_formats"), list) and st["allowed_formats"]:
                p["format"]["enum"] = [str(x) for x in st["allowed_formats"]]
            return {"type": "object", "properties": p, "required": ["value"]}
        if t in ("file", "image"):
            p = {"target_id": {"type": "integer", "minimum": 1}, "filename": {"type": "string"},
                 "filesize": {"type": "integer", "minimum": 0}}
            words = []
            ext = st.get("file_extensions")
            if isinstance(ext, str) and ext.split():
                p["filename"]["pattern"] = r"\.(" + "|".join(re.escape(e) for e in ext.split()) + ")$"
                words.append("Allowed extensions: " + ", ".join(ext.split()) + ".")
            size = st.get("max_filesize")
            if isinstance(size, str):
                m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgG]?)(?:[bB]|ytes?)?\s*", size)
                if m:
                    p["filesize"]["maximum"] = int(float(m[1]) * 1024 ** " kmg".index(m[2].lower() or " "))
                words.append("At most " + size + ".")
            o = {"type": "object", "properties": p, "required": ["target_id"]}
            if words:
                o["description"] = " ".join(words)
            return o
        if t == "entity_reference":
            o = {"type": "string"}
            target = st.get("target_type")
            if self.enums.get(target):
                o["enum"] = self.enums[target]
            return o
        if t == "link":
            p = {"uri": {"type": "string", "format": "uri"}, "title": {"type": "string"}}
            return {"type": "object", "properties": p, "required": ["uri"]}
        if t in TYPES:
            o = {k: v for k, v in s.items() if k not in ("settings", "cardinality", "required")}
            return self.fix(o)
        return {}


def levels(v):
    if isinstance(v, dict):
        return 1 + max(map(levels, v.values()), default=0)
    if isinstance(v, list):
        return 1 + max(map(levels, v), default=0)
    return 0


def targets(data):
    """The entity types that parameters refer to."""
    found = set()

    def walk(v):
        if isinstance(v, dict):
            if v.get("type") == "entity_reference" and isinstance(v.get("settings"), dict):
                t = v["settings"].get("target_type")
                if isinstance(t, str):
                    found.add(t)
            for x in v.values():
                walk(x)
        elif isinstance(v, list):
            for x in v:
                walk(x)
    for m in data:
        a = m.get("attributes") if isinstance(m, dict) else None
        if isinstance(a, dict) and "mcpTool" in a:
            walk(a.get("params"))
    return found


HINTS = {"title": str, "readOnlyHint": bool, "destructiveHint": bool, "idempotentHint": bool, "openWorldHint": bool}
D7 = "http://json-schema.org/draft-07/schema#"


class Tool:
    __slots__ = ("name", "doc", "json", "mcp", "input", "output", "validator", "loose", "strict", "wrap")

    def __init__(self, m, enums):
        a = m["attributes"]
        self.name = m["id"]
        notes = []
        mark = a["mcpTool"]
        mark = mark if isinstance(mark, dict) else {}
        usage = a.get("usage")
        title = mark.get("title")
        title = title if isinstance(title, str) and title else None
        doc = {"name": self.name}
        if title:
            doc["title"] = title
        doc["description"] = usage if isinstance(usage, str) and usage else (title or self.name)
        params = a.get("params")
        schema = {"type": "object", "properties": {}}
        if isinstance(params, list) and params:
            raise Untranslatable("it takes its parameters by position")
        required = []
        if isinstance(params, dict):
            for n, p in params.items():
                if not isinstance(p, dict):
                    raise Untranslatable("the parameter %s is no object" % n)
                pa = p.get("attributes")
                pa = pa if isinstance(pa, dict) else {}
                s = p["schema"] if "schema" in p else pa.get("schema", {})
                prop = Fixer(s, enums, notes).fix(s)
                d = pa.get("description")
                if isinstance(d, str) and d:
                    if prop is True:
                        prop = {}
                    elif prop is False:
                        prop = {"not": {}}
                    if isinstance(s, dict) and s.get("type") not in ("file", "image") or "description" not in prop:
                        prop = dict(prop, description=d)
                    else:
                        prop = dict(prop, description=d + " " + prop["description"])
                schema["properties"][n] = prop
                if pa.get("required") is True or isinstance(s, dict) and s.get("required") is True:
                    required.append(n)
        if required:
            schema["required"] = required
        doc["inputSchema"] = schema
        self.input = schema
        self.output = None
        if a.get("output") is not None:
            out = Fixer(a["output"], enums, notes).fix(a["output"])
            if isinstance(out, bool):
                out = {} if out else {"not": {}}
            doc["outputSchema"] = self.output = out
        ann = mark.get("annotations")
        if isinstance(ann, dict):
            doc["annotations"] = ann
        elif ann:
            notes.append("its annotations are no object")
        self.doc = doc
        for s in (schema, self.output):
            if s is not None and levels(s) > 32:
                raise Untranslatable("its schema is too deep")
            Args.check_schema(s if s is not None else {})
        self.json = jbytes(doc)
        if len(jbytes(schema)) > 64000 or self.output is not None and len(jbytes(self.output)) > 64000:
            raise Untranslatable("its schema is too large")
        self.validator = args_validator(schema)
        self.wrap = False
        self.loose = self.strict = None
        if self.output is not None:
            self.loose = Loose(self.output, format_checker=fmt)
            self.strict = Args(self.output, format_checker=fmt)
            self.wrap = self.output.get("type") != "object"
        self.mcp = None
        if notes:
            log("the method %s was repaired: %s" % (self.name, "; ".join(dict.fromkeys(notes))))

    def for_mcp(self):
        if self.mcp is None:
            d = self.doc
            o = {k: d[k] for k in ("name", "title", "description") if k in d}
            o["inputSchema"] = {"$schema": D7, **d["inputSchema"]}
            if self.output is not None:
                s = self.output
                if self.wrap:
                    s = {"type": "object", "properties": {"result": s}, "required": ["result"]}
                o["outputSchema"] = {"$schema": D7, **s}
            ann = d.get("annotations")
            if ann:
                hints = {k: v for k, v in ann.items() if k in HINTS and type(v) is HINTS[k]}
                if hints:
                    o["annotations"] = hints
                rest = {k: v for k, v in ann.items() if k not in HINTS}
                if rest:
                    o["_meta"] = {"org.drupal/annotations": rest}
            self.mcp = jbytes(o)
        return self.mcp


class Catalog:
    def __init__(self, data, enums):
        self.tools = {}
        for m in data:
            try:
                if not isinstance(m, dict) or not isinstance(m.get("id"), str) or not m["id"]:
                    raise Untranslatable("it has no id")
                a = m.get("attributes")
                if not isinstance(a, dict) or "mcpTool" not in a or a["mcpTool"] is None or a["mcpTool"] is False:
                    continue
                self.tools.setdefault(m["id"], Tool(m, enums))
            except Exception as e:
                why = e if isinstance(e, Untranslatable) else "it cannot be translated (%s)" % type(e).__name__
                log("the method %s is left out: %s" % (m.get("id") if isinstance(m, dict) else "?", why))
        self.finish()

    def finish(self):
        self.order = list(self.tools.values())
        self.version = hashlib.sha256("\0".join(self.tools).encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self.content = hashlib.sha256(b"\0".join(t.json for t in self.order)).hexdigest()[:20]
        self.pages = {}

    def without(self, name):
        c = Catalog.__new__(Catalog)
        c.tools = {k: v for k, v in self.tools.items() if k != name}
        c.finish()
        return c
