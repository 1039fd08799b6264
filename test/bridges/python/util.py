"""JSON that loses nothing, ECMA patterns, and Draft 7 validation."""
import json, re, sys
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from json.decoder import scanstring
import jsonschema
from jsonschema import Draft7Validator, FormatChecker
from jsonschema.exceptions import ValidationError

sys.set_int_max_str_digits(40000)
sys.setrecursionlimit(4000)


class Bad(ValueError):
    pass


def pairs(items):
    d = dict(items)
    if len(d) != len(items):
        raise Bad("a member name occurs twice in one object")
    return d


def constant(name):
    raise Bad(name + " is no JSON")


DEC = json.JSONDecoder(object_pairs_hook=pairs, parse_float=Decimal, parse_constant=constant)
LENIENT = json.JSONDecoder(parse_float=Decimal, parse_constant=constant)
WS = re.compile(r"[ \t\n\r]*")
STR = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)


def depth(text):
    if text.count("[") + text.count("{") <= 500:
        return 0
    d = m = 0
    for c in re.findall(r"[\[\]{}]", STR.sub("", text)):
        if c in "[{":
            d += 1
            m = max(m, d)
        else:
            d -= 1
    return m


def decode(raw):
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Bad("the text is not UTF-8")
    if depth(text) > 500:
        raise Bad("the value is nested too deep")
    return text


def parse(text, dec=DEC):
    i = WS.match(text, 0).end()
    try:
        v, end = dec.raw_decode(text, i)
    except (ValueError, RecursionError, InvalidOperation) as e:
        raise Bad(str(e)[:80])
    if WS.match(text, end).end() != len(text):
        raise Bad("there is more after the value")
    return v


def split(text, dec=DEC):
    """Members of the object in text: name -> (value, its text). None if it is no object."""
    i = WS.match(text, 0).end()
    if i >= len(text):
        raise Bad("the body is empty")
    if text[i] != "{":
        parse(text, dec)
        return None
    out = {}
    try:
        i = WS.match(text, i + 1).end()
        if text[i] == "}":
            i += 1
        else:
            while True:
                if text[i] != '"':
                    raise Bad("a member name is missing")
                key, i = scanstring(text, i + 1, True)
                i = WS.match(text, i).end()
                if text[i] != ":":
                    raise Bad("a colon is missing")
                i = WS.match(text, i + 1).end()
                v, end = dec.raw_decode(text, i)
                if key in out and dec is DEC:
                    raise Bad("a member name occurs twice in one object")
                out[key] = (v, text[i:end])
                i = WS.match(text, end).end()
                if text[i] == ",":
                    i = WS.match(text, i + 1).end()
                    continue
                if text[i] == "}":
                    i += 1
                    break
                raise Bad("a comma is missing")
    except (IndexError, RecursionError, InvalidOperation):
        raise Bad("the JSON ends too early")
    except ValueError as e:
        raise Bad(str(e)[:80])
    if WS.match(text, i).end() != len(text):
        raise Bad("there is more after the value")
    return out


def dump(v):
    """JSON of values with exact decimals."""
    if isinstance(v, dict):
        return "{" + ",".join(json.dumps(k) + ":" + dump(x) for k, x in v.items()) + "}"
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(map(dump, v)) + "]"
    if isinstance(v, Decimal):
        return str(v).replace("E+", "E")
    return json.dumps(v)


def jbytes(v):
    try:
        return json.dumps(v, ensure_ascii=False, separators=(",", ":"), default=num).encode()
    except UnicodeEncodeError:
        return json.dumps(v, separators=(",", ":"), default=num).encode()


def num(v):
    if isinstance(v, Decimal):
        f = float(v)
        return int(v) if v == v.to_integral_value() and abs(v) < 10**15 and v.as_tuple().exponent >= 0 else f
    raise TypeError(type(v))


# patterns -------------------------------------------------------------------

def ecma(p):
    """A pattern of ECMA-262 as one of re."""
    out, i, cls = [], 0, False
    while i < len(p):
        c = p[i]
        if c == "\\" and i + 1 < len(p):
            n = p[i + 1]
            i += 2
            if n == "d":
                out.append("0-9" if cls else "[0-9]")
            elif n == "D":
                out.append("[^0-9]" if not cls else r"\D")
            elif n == "w":
                out.append("A-Za-z0-9_" if cls else "[A-Za-z0-9_]")
            elif n == "W":
                out.append("[^A-Za-z0-9_]" if not cls else r"\W")
            elif n == "c" and i < len(p):
                out.append(re.escape(chr(ord(p[i]) % 32)))
                i += 1
            elif n in "ZAz":
                out.append(n)
            else:
                out.append("\\" + n)
            continue
        if cls:
            if c == "]":
                cls = False
            elif c == "[":
                c = "\\["
            out.append(c)
        elif c == "[":
            cls = True
            if p.startswith("[^]", i):
                out.append(r"[\s\S]")
                i += 3
                cls = False
                continue
            if p.startswith("[]", i):
                out.append(r"[^\s\S]")
                i += 2
                cls = False
                continue
            out.append(c)
        elif c == "$":
            out.append(r"\Z")
        elif p.startswith("(?<", i) and not p.startswith(("(?<=", "(?<!"), i):
            out.append("(?P<")
            i += 3
            continue
        else:
            out.append(c)
        i += 1
    return re.compile("".join(out))


PATTERNS = {}


def pattern(p):
    if p not in PATTERNS:
        if len(PATTERNS) > 5000:
            PATTERNS.clear()
        try:
            PATTERNS[p] = ecma(p)
        except (re.error, OverflowError, ValueError):
            PATTERNS[p] = None
    return PATTERNS[p]


# validation -----------------------------------------------------------------

fmt = FormatChecker(formats=())
DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.A)
TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.A)


def is_date(s):
    m = DATE.fullmatch(s)
    if not m:
        return False
    try:
        date(*map(int, m.groups()))
        return True
    except ValueError:
        return False


def checks(name):
    def deco(fn):
        fmt.checks(name)(lambda v: not isinstance(v, str) or bool(fn(v)))
        return fn
    return deco


checks("date")(is_date)
checks("time")(lambda s: TIME.fullmatch(s))
checks("date-time")(lambda s: len(s) > 11 and s[10] in "Tt " and is_date(s[:10]) and TIME.fullmatch(s[11:]))
EMAIL = re.compile(r"[^\s@]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[^\s@]+@\[[^\]]+\]|\"[^\"]+\"@[A-Za-z0-9.-]+")
checks("email")(lambda s: EMAIL.fullmatch(s) and ".." not in s and not s.startswith(".") and ".@" not in s)
checks("idn-email")(lambda s: "@" in s[1:-1])
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
checks("uri")(lambda s: URI.fullmatch(s) and s.count("#") < 2 and len(s.split(":", 1)[1]) > 0)
URIREF = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
checks("uri-reference")(lambda s: URIREF.fullmatch(s) and s.count("#") < 2)
HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*")
checks("hostname")(lambda s: HOST.fullmatch(s))
IP4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!\Z)|\Z)){4}", re.A)
checks("ipv4")(lambda s: IP4.fullmatch(s))


@checks("ipv6")
def ip6(s):
    import ipaddress
    try:
        return "%" not in s and ipaddress.IPv6Address(s) is not None
    except ValueError:
        return False


UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
checks("uuid")(lambda s: UUID.fullmatch(s))
checks("regex")(lambda s: pattern(s) is not None)
checks("json-pointer")(lambda s: re.fullmatch(r"(?:/(?:[^~/]|~[01])*)*", s, re.S))


def is_int(_, v):
    if isinstance(v, bool):
        return False
    return isinstance(v, int) or isinstance(v, Decimal) and v == v.to_integral_value()


def is_num(_, v):
    return not isinstance(v, bool) and isinstance(v, (int, Decimal, float))


def check_pattern(validator, p, v, schema):
    if isinstance(v, str):
        r = pattern(p)
        if r is not None and not r.search(v):
            yield ValidationError("does not match " + p)


def check_patternprops(validator, props, v, schema):
    if not validator.is_type(v, "object"):
        return
    for p, sub in props.items():
        r = pattern(p)
        for k in v:
            if r is not None and r.search(k):
                yield from validator.descend(v[k], sub, path=k, schema_path=p)


def extras(v, schema):
    props = schema.get("properties", {})
    pats = [pattern(p) for p in schema.get("patternProperties", {})]
    return [k for k in v if k not in props and not any(r and r.search(k) for r in pats)]


def check_additional(validator, a, v, schema):
    if not validator.is_type(v, "object"):
        return
    ex = extras(v, schema)
    if isinstance(a, dict):
        for k in ex:
            yield from validator.descend(v[k], a, path=k)
    elif a is False and ex:
        for k in ex:
            yield ValidationError("is not declared", path=[k])


def frac(v):
    if isinstance(v, float):
        v = Decimal(repr(v))
    if isinstance(v, Decimal) and abs(v.adjusted()) > 400:
        return None
    return Fraction(v)


def check_multiple(validator, m, v, schema):
    if not is_num(None, v):
        return
    a, b = frac(v), frac(m)
    if a is None or not b:
        return
    if (a / b).denominator != 1:
        yield ValidationError("is no multiple of %s" % m)


def num_(v):
    return Decimal(repr(v)) if isinstance(v, float) else v


def bound(test):
    def check(validator, b, v, schema):
        if is_num(None, v) and test(v, num_(b)):
            yield ValidationError("out of bounds")
    return check


def eq(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if is_num(None, a) and is_num(None, b):
        return num_(a) == num_(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(eq(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(eq, a, b))
    return type(a) == type(b) and a == b


def check_enum(validator, e, v, schema):
    if not any(eq(v, x) for x in e):
        yield ValidationError("is none of the enum")


def check_const(validator, c, v, schema):
    if not eq(v, c):
        yield ValidationError("is not the constant")


def check_unique(validator, u, v, schema):
    if u and isinstance(v, list):
        seen = set()
        def canon(x):
            if isinstance(x, bool) or x is None:
                return repr(x)
            if is_num(None, x):
                d = Decimal(num_(x))
                return str(d.normalize()) if abs(d.adjusted()) < 27 else str(d)
            if isinstance(x, str):
                return json.dumps(x)
            if isinstance(x, list):
                return "[" + ",".join(map(canon, x)) + "]"
            return "{" + ",".join(sorted(json.dumps(k) + ":" + canon(y) for k, y in x.items())) + "}"
        for x in v:
            c = canon(x)
            if c in seen:
                yield ValidationError("has an item twice")
                return
            seen.add(c)


TYPES = Draft7Validator.TYPE_CHECKER.redefine("integer", is_int).redefine("number", is_num)
KEYWORDS = {
    "pattern": check_pattern, "patternProperties": check_patternprops, "additionalProperties": check_additional,
    "multipleOf": check_multiple, "enum": check_enum, "const": check_const, "uniqueItems": check_unique,
    "minimum": bound(lambda v, b: v < b), "maximum": bound(lambda v, b: v > b),
    "exclusiveMinimum": bound(lambda v, b: v <= b), "exclusiveMaximum": bound(lambda v, b: v >= b),
}
Args = jsonschema.validators.extend(Draft7Validator, KEYWORDS, type_checker=TYPES)
# results: PHP's [] counts as {}
Loose = jsonschema.validators.extend(Args, {}, type_checker=TYPES.redefine(
    "object", lambda _, v: isinstance(v, dict) or v == []))


def args_validator(schema):
    return Args(schema, format_checker=fmt)


def type_name(v):
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "boolean"
    if isinstance(v, int):
        return "integer"
    if isinstance(v, (Decimal, float)):
        return "number"
    return {str: "string", list: "array", dict: "object"}[type(v)]


def show(v):
    t = type_name(v)
    if t in ("array", "object"):
        return t
    s = dump(v)
    return t if t == "null" else t + " " + (s if len(s) < 60 else s[:57] + "…")


def expected(e):
    k, val = e.validator, e.validator_value
    if k == "type":
        return val if isinstance(val, str) else " or ".join(val)
    if k == "required":
        return "a value"
    if k in ("additionalProperties", "properties"):
        return "no such member"
    if k in ("anyOf", "oneOf", "allOf", "not", "if", "contains", "propertyNames", "dependencies", None):
        return "a value that fits " + (k or "false")
    return "%s %s" % (k, dump(val)[:200] if not isinstance(val, float) else val)


def violations(validator, v, limit=50):
    """[{parameter, expected, received}]"""
    out = []
    for e in validator.iter_errors(v):
        path = list(e.absolute_path)
        if e.validator == "required" and not path:
            names = [r for r in e.validator_value if r not in v]
            for n in names:
                if not any(o["parameter"] == n for o in out):
                    props = validator.schema.get("properties", {}).get(n, {})
                    t = props.get("type", "a value") if isinstance(props, dict) else "a value"
                    out.append({"parameter": n, "expected": t if isinstance(t, str) else " or ".join(t), "received": "nothing"})
            continue
        o = {"parameter": str(path[0]) if path else "arguments", "expected": expected(e), "received": show(e.instance)}
        if e.validator == "additionalProperties" and e.validator_value is False and path:
            o["received"] = "a value"
        if len(path) > 1:
            o["path"] = "/".join(map(str, path))
        if e.validator == "required":
            o["expected"] = "the members " + ", ".join(e.validator_value)
        out.append(o)
        if len(out) >= limit:
            break
    return out


def coerce(v, s):
    """PHP's [] becomes {} where the schema requires an object."""
    if not isinstance(s, dict):
        return v
    if v == [] and isinstance(v, list) and s.get("type") == "object":
        v = {}
    if isinstance(v, dict):
        props = s.get("properties", {})
        pats = s.get("patternProperties", {})
        add = s.get("additionalProperties")
        new = {}
        for k, x in v.items():
            if k in props:
                x = coerce(x, props[k])
            hit = k in props
            for p, sub in pats.items():
                r = pattern(p)
                if r and r.search(k):
                    x = coerce(x, sub)
                    hit = True
            if not hit and isinstance(add, dict):
                x = coerce(x, add)
            new[k] = x
        v = new
    elif isinstance(v, list) and v:
        it = s.get("items")
        if isinstance(it, dict):
            v = [coerce(x, it) for x in v]
        elif isinstance(it, list):
            v = [coerce(x, it[i]) if i < len(it) else coerce(x, s.get("additionalItems")) for i, x in enumerate(v)]
    for sub in s.get("allOf", ()):
        v = coerce(v, sub)
    for k in ("anyOf", "oneOf"):
        if k in s and not Args(s).is_valid(v):
            for sub in s[k]:
                c = coerce(v, sub)
                if Args(sub).is_valid(c):
                    v = c
                    break
    return v
