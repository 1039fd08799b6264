#!/usr/bin/env python3
"""A bridge from a Drupal site's JSON-RPC methods to MCP tools.

DRUPAL_URL=http://127.0.0.1:8080 BRIDGE_LISTEN=127.0.0.1:8081 python3 bridge.py

It needs Python 3.11 or later with starlette, uvicorn, httptools, aiohttp and jsonschema.
"""
import asyncio, base64, gzip, hashlib, itertools, json, os, re, sys, time, zlib
from collections import OrderedDict
from urllib.parse import unquote_to_bytes, urlsplit
import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount
from util import Bad, LENIENT, decode, parse, split, dump, jbytes, violations
from translate import Catalog, targets, log

env = os.environ.get
SITE = env("DRUPAL_URL", "http://127.0.0.1:8080").rstrip("/")
HOST, _, PORT = env("BRIDGE_LISTEN", "127.0.0.1:8081").rpartition(":")
TTL = min(float(env("BRIDGE_DISCOVERY_TTL") or 300), float(env("BRIDGE_PERMISSION_TTL") or 60))
TIMEOUT = float(env("BRIDGE_UPSTREAM_TIMEOUT") or 30)
PAGE = int(env("BRIDGE_PAGE_SIZE") or 50)
CLOCK = env("BRIDGE_CLOCK")
MAX_BODY = 2 << 20
MAX_ANSWER = 32 << 20
ADMIN_METHOD = env("BRIDGE_ADMIN_METHOD", "cache.rebuild")
NAME, VERSION = "py-bridge", "1.0"


def now():
    if CLOCK:
        try:
            with open(CLOCK) as f:
                return time.monotonic() + float(f.read() or 0)
        except (OSError, ValueError):
            pass
    return time.monotonic()


STATUS = {"missing_parameter": 400, "invalid_json": 400, "invalid_params": 400, "invalid_cursor": 400, "invalid_request": 400,
          "authentication_required": 401, "access_denied": 403, "tool_not_found": 404, "not_found": 404,
          "method_not_allowed": 405, "request_too_large": 413, "unsupported_media_type": 415,
          "execution_error": 500, "internal_error": 500, "upstream_error": 502, "upstream_unavailable": 503,
          "overloaded": 503, "upstream_timeout": 504}


class Err(Exception):
    def __init__(self, code, message, data=None, headers=(), raw_data=None):
        super().__init__(message)
        self.code, self.message, self.data, self.headers, self.raw = code, message, data, list(headers), raw_data
        self.status = STATUS[code]

    def body(self):
        head = b'{"error":{"code":%s,"message":%s' % (jbytes(self.code), jbytes(self.message))
        if self.raw is not None:
            head += b',"data":' + self.raw.encode()
        elif self.data is not None:
            head += b',"data":' + dump(self.data).encode()
        return head + b"}}"


class Gone(Exception):
    pass


def not_found(name):
    return Err("tool_not_found", 'There is no tool named "%s".' % name)


# the caller -----------------------------------------------------------------

class Caller:
    __slots__ = ("auth", "cookie", "lang", "ident", "key", "headers", "origin_ok", "trace")

    def __init__(self, scope):
        auth, cookies, lang, origin, host = [], [], [], None, ""
        self.trace = []
        for k, v in scope["headers"]:
            if k == b"authorization":
                auth.append(v)
            elif k == b"cookie":
                cookies.append(v)
            elif k == b"accept-language":
                lang.append(v)
            elif k == b"origin":
                origin = v
            elif k == b"host":
                host = v
            elif k in (b"traceparent", b"tracestate"):
                self.trace.append((k.decode(), v.decode("latin-1")))
        if len(auth) > 1:
            raise Err("invalid_request", "There are several Authorization headers.")
        self.auth = self.text(auth[0]) if auth and auth[0].strip() else None
        found = []
        for c in cookies:
            for part in c.split(b";"):
                n, eq, v = part.strip().partition(b"=")
                if eq and re.fullmatch(rb"S?SESS[0-9a-f]{32}", n):
                    found.append(self.text(n + b"=" + v))
        self.cookie = "; ".join(found) if found else None
        l = b",".join(lang).strip()
        self.lang = l.decode() if l and l.isascii() and len(l) < 200 else None
        self.ident = (self.auth, self.cookie)
        self.key = (self.ident, self.lang)
        self.origin_ok = True
        if origin is not None:
            o = urlsplit(origin.decode("latin-1"))
            self.origin_ok = bool(o.netloc) and o.scheme in ("http", "https") and o.netloc.lower() == host.decode("latin-1").lower()
        self.headers = {}
        if self.auth:
            self.headers["Authorization"] = self.auth
        if self.cookie:
            self.headers["Cookie"] = self.cookie
        if self.lang:
            self.headers["Accept-Language"] = self.lang

    @staticmethod
    def text(raw):
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise Err("access_denied", "The credentials are not valid.")


# the site -------------------------------------------------------------------

http = None
ids = itertools.count(1)


def unpack(encoding):
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(47)
    raise Err("upstream_error", "The site's response has an unknown encoding.")


async def ask(method, path, headers, body=None):
    """One request to the site. (status, headers, bytes)"""
    async def go():
        async with http.request(method, SITE + path, headers=headers, data=body, allow_redirects=False) as r:
            z = unpack(r.headers.get("Content-Encoding", "").strip().lower())
            total, parts = 0, []
            async for chunk in r.content.iter_chunked(1 << 16):
                while chunk:
                    if z:
                        out = z.decompress(chunk, 1 << 20)
                        chunk = z.unconsumed_tail
                    else:
                        out, chunk = chunk, b""
                    total += len(out)
                    parts.append(out)
                    if total > MAX_ANSWER:
                        r.close()
                        raise Err("upstream_error", "The site's response is too large.")
            if z and not z.eof:
                raise Err("upstream_error", "The site's response is cut off.")
            return r.status, r.headers, b"".join(parts)
    try:
        return await asyncio.wait_for(go(), TIMEOUT - 0.05)
    except asyncio.TimeoutError:
        raise Err("upstream_timeout", "The site did not respond in time.")
    except aiohttp.ClientConnectorError:
        raise Err("upstream_unavailable", "The site cannot be reached.")
    except (aiohttp.ClientError, zlib.error, OSError, ValueError, AssertionError):
        raise Err("upstream_error", "The site's response is not usable.")


def refusal(status, headers):
    if status == 401:
        ch = [("WWW-Authenticate", v) for v in headers.getall("WWW-Authenticate", [])] or [("WWW-Authenticate", 'Basic realm="Drupal"')]
        return Err("authentication_required", "The site asks for credentials.", headers=ch)
    if status == 403:
        return Err("access_denied", "The site denies this caller access.")
    return None


def unusable(status, headers):
    if status in (503, 429):
        ra = headers.get("Retry-After", "")
        return Err("upstream_unavailable", "The site says that it is not available.", headers=[("Retry-After", ra)] if ra.isdigit() else ())
    if status == 504:
        return Err("upstream_timeout", "The site did not respond in time.")
    return Err("upstream_error", "The site's response is not usable.")


async def rpc(caller, method, params_text, extra=()):
    """('result', text, value) or ('error', dict, members)"""
    rid = next(ids)
    body = '{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}' % (rid, json.dumps(method), params_text)
    h = dict(caller.headers, **{"Content-Type": "application/json", "Accept": "application/json"})
    h.update(extra)
    status, headers, raw = await ask("POST", "/jsonrpc", h, body.encode("utf-8", "surrogatepass"))
    bad = refusal(status, headers)
    if bad:
        raise bad
    try:
        text = decode(raw)
        m = split(text, LENIENT)
    except Bad:
        raise unusable(status if status != 200 else 0, headers)
    if m is None:
        raise unusable(status if status != 200 else 0, headers)
    if "error" in m and "result" in m:
        raise unusable(0, headers)
    got = m["id"][0] if "id" in m else None
    if "error" in m:
        e = m["error"][0]
        if not isinstance(e, dict) or not isinstance(e.get("code"), int) or isinstance(e.get("code"), bool):
            raise unusable(status if status != 200 else 0, headers)
        if got is not None and got != rid and got != str(rid):
            raise unusable(0, headers)
        if status not in (200, 400, 500) and not 400 <= status < 600:
            raise unusable(status, headers)
        return "error", e, split(m["error"][1], LENIENT)
    if "result" not in m or not 200 <= status < 300 or isinstance(got, bool) or got != rid or not isinstance(got, int):
        raise unusable(status if status >= 300 else 0, headers)
    return "result", m["result"][1], m["result"][0]


# catalogs -------------------------------------------------------------------

class Entry:
    __slots__ = ("catalog", "discovery", "admin", "at", "expired")

    def __init__(self, catalog, discovery, admin, at):
        self.catalog, self.discovery, self.admin, self.at, self.expired = catalog, discovery, admin, at, False


entries = OrderedDict()
flights = {}
generation = 0
idgen = {}
translated = OrderedDict()


async def fetch(caller):
    status, headers, raw = await ask("GET", "/jsonrpc/methods", dict(caller.headers, Accept="application/json"))
    bad = refusal(status, headers)
    if bad:
        raise bad
    if status != 200:
        raise unusable(status, headers)
    digest = hashlib.sha256(raw).digest()
    hit = translated.get(digest)
    if hit:
        return hit

    def read():
        try:
            text = decode(raw)
            doc = parse(text, json.JSONDecoder())
        except Bad:
            raise unusable(0, headers)
        if not isinstance(doc, dict) or not isinstance(doc.get("data"), list):
            raise unusable(0, headers)
        return doc
    big = len(raw) > 300000
    doc = await asyncio.to_thread(read) if big else read()
    data = doc["data"]
    seen = {m["id"] for m in data if isinstance(m, dict) and isinstance(m.get("id"), str)}
    enums = {}
    want = targets(data)
    for t in sorted(want):
        method = t + ".list"
        if method in seen:
            try:
                kind, text, value = await rpc(caller, method, "{}")
                if kind == "result" and isinstance(value, list) and len(value) <= 100:
                    v = [str(x["id"]) for x in value if isinstance(x, dict) and "id" in x]
                    if v:
                        enums[t] = v
            except Err:
                pass
    meta = doc.get("meta")
    mcp = meta.get("mcp") if isinstance(meta, dict) else None
    discovery = isinstance(mcp, dict) and mcp.get("discovery") is True
    catalog = await asyncio.to_thread(Catalog, data, enums) if big else Catalog(data, enums)
    r = (catalog, discovery, ADMIN_METHOD in seen)
    if not want:
        translated[digest] = r
        while len(translated) > 24:
            translated.popitem(last=False)
    return r


async def flight(caller, gen, ig):
    at = now()
    try:
        catalog, discovery, admin = await fetch(caller)
    except Err as e:
        if e.status in (401, 403):
            entries.pop(caller.key, None)
        raise
    e = Entry(catalog, discovery, admin, at)
    if gen == generation and ig == idgen.get(caller.ident, 0):
        entries[caller.key] = e
        entries.move_to_end(caller.key)
        while len(entries) > 3000:
            entries.popitem(last=False)
    return e


async def catalog_of(caller):
    """(entry, seconds that it is too old or None)"""
    e = entries.get(caller.key)
    t = now()
    if e and not e.expired and 0 <= t - e.at < TTL:
        return e, None
    ig = idgen.get(caller.ident, 0)
    k = (caller.key, generation, ig)
    task = flights.get(k)
    if task is None:
        task = asyncio.create_task(flight(caller, generation, ig))
        flights[k] = task
        task.add_done_callback(lambda t: (flights.pop(k, None), t.cancelled() or t.exception()))
    try:
        return await asyncio.shield(task), None
    except Err as err:
        if err.status in (401, 403):
            raise
        old = entries.get(caller.key)
        if old is None:
            raise
        return old, max(1, int(now() - old.at))


def expire(caller, name=None):
    """The caller's catalogs are out of date; name is gone."""
    idgen[caller.ident] = idgen.get(caller.ident, 0) + 1
    if len(idgen) > 20000:
        idgen.clear()
    for (ident, lang), e in list(entries.items()):
        if ident == caller.ident:
            n = Entry(e.catalog.without(name) if name else e.catalog, e.discovery, e.admin, e.at)
            n.expired = True
            entries[(ident, lang)] = n


def invalidate():
    global generation
    generation += 1
    entries.clear()


# pages ----------------------------------------------------------------------

def cursor_of(catalog, offset):
    return base64.urlsafe_b64encode(b"%d.%s" % (offset, catalog.version.encode())).decode().rstrip("=")


def offset_of(catalog, cursor):
    bad = Err("invalid_cursor", "The cursor is not one of this list: start again without a cursor.")
    if not isinstance(cursor, str) or not re.fullmatch(r"[A-Za-z0-9_-]{4,64}", cursor):
        raise bad
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        raise bad
    m = re.fullmatch(rb"([1-9][0-9]{0,8})\.([0-9a-f]{12})", raw)
    if not m or m[2].decode() != catalog.version:
        raise bad
    n = int(m[1])
    if n % PAGE or n >= len(catalog.order) or cursor_of(catalog, n) != cursor:
        raise bad
    return n


def page(catalog, offset, kind="rest"):
    k = (offset, kind)
    p = catalog.pages.get(k)
    if p is None:
        tools = catalog.order[offset:offset + PAGE]
        parts = [t.json if kind == "rest" else t.for_mcp() for t in tools]
        body = b'"tools":[' + b",".join(parts) + b"]"
        if offset + PAGE < len(catalog.order):
            body += b',"nextCursor":' + jbytes(cursor_of(catalog, offset + PAGE))
        if kind == "rest":
            body = b"{" + body + b"}"
        p = [body, 'W/"%s"' % hashlib.sha256(body).hexdigest()[:24], None]
        if len(catalog.pages) > 400:
            catalog.pages.clear()
        catalog.pages[k] = p
    return p


# http -----------------------------------------------------------------------

NOSNIFF = {"X-Content-Type-Options": "nosniff"}


def reply(body, status=200, headers=None, cache="no-store"):
    h = {"Content-Type": "application/json", "Cache-Control": cache, **NOSNIFF}
    r = Response(body, status, h)
    for k, v in (headers.items() if isinstance(headers, dict) else headers or ()):
        r.headers.append(k, v)
    return r


def failure(e):
    return reply(e.body(), e.status, e.headers)


def header(scope, name):
    return [v.decode("latin-1") for k, v in scope["headers"] if k == name]


def query(scope):
    out = {}
    for part in scope["query_string"].split(b"&"):
        if part:
            k, _, v = part.partition(b"=")
            out.setdefault(unquote_to_bytes(k.replace(b"+", b" ")), []).append(unquote_to_bytes(v.replace(b"+", b" ")))
    return out


def one(q, name, code):
    if name.encode() + b"[]" in q:
        raise Err(code, "The parameter %s is no single text." % name)
    v = q.get(name.encode())
    if v is None:
        return None
    if len(v) > 1:
        raise Err("invalid_request", "The parameter %s is there more than once." % name)
    try:
        return v[0].decode("utf-8")
    except UnicodeDecodeError:
        raise Err(code, "The parameter %s is not UTF-8." % name)


def accepts_gzip(scope):
    star = None
    for v in ",".join(header(scope, b"accept-encoding")).split(","):
        n, *ps = [x.strip().lower() for x in v.split(";")]
        qv = 1.0
        for p in ps:
            if p.startswith("q="):
                try:
                    qv = float(p[2:])
                except ValueError:
                    qv = 0
        if n in ("gzip", "x-gzip"):
            return qv > 0
        if n == "*":
            star = qv > 0
    return bool(star)


async def read_body(scope, receive):
    cl = header(scope, b"content-length")
    if cl and cl[0].isdigit() and int(cl[0]) > MAX_BODY:
        await drain(receive, 8 << 20)
        raise Err("request_too_large", "The body is longer than %d bytes." % MAX_BODY)
    parts, total = [], 0
    while True:
        m = await receive()
        if m["type"] == "http.disconnect":
            raise Gone
        total += len(m.get("body", b""))
        if total > MAX_BODY:
            if m.get("more_body"):
                await drain(receive, 8 << 20)
            raise Err("request_too_large", "The body is longer than %d bytes." % MAX_BODY)
        parts.append(m.get("body", b""))
        if not m.get("more_body"):
            return b"".join(parts)


async def drain(receive, limit):
    n = 0

    async def go():
        nonlocal n
        while n < limit:
            m = await receive()
            if m["type"] == "http.disconnect":
                return
            n += len(m.get("body", b""))
            if not m.get("more_body"):
                return
    try:
        await asyncio.wait_for(go(), 3)
    except asyncio.TimeoutError:
        pass


async def while_connected(receive, coro):
    """Runs coro, and ends it when the caller disconnects."""
    work = asyncio.ensure_future(coro)

    async def watch():
        while True:
            m = await receive()
            if m["type"] == "http.disconnect":
                return
    w = asyncio.ensure_future(watch())
    try:
        await asyncio.wait({work, w}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        work.cancel()
        raise Gone
    finally:
        w.cancel()
        if not work.done():
            work.cancel()


def json_only(scope):
    ct = header(scope, b"content-type")
    media = ct[0].split(";")[0].strip().lower() if ct else ""
    if media != "application/json" or len(ct) > 1:
        raise Err("unsupported_media_type", "The body has to be application/json.")
    ce = header(scope, b"content-encoding")
    if ce and ce[0].strip().lower() not in ("", "identity"):
        raise Err("unsupported_media_type", "A body with a Content-Encoding is not read.")


VARY = "Authorization, Cookie, Accept-Language, Accept-Encoding"


async def may_discover(caller):
    e, old = await catalog_of(caller)
    if not e.discovery:
        raise Err("access_denied", "This caller may not discover tools: the permission 'access mcp tool discovery' is required.")
    return e, old


def shown(old):
    h = {"Vary": VARY}
    if old is not None:
        h["Age"] = str(old)
        h["Warning"] = '110 - "Response is Stale"'
    return h


async def do_list(scope, caller):
    e, old = await may_discover(caller)
    q = query(scope)
    c = one(q, "cursor", "invalid_cursor")
    offset = offset_of(e.catalog, c) if c else 0
    p = page(e.catalog, offset)
    h = shown(old)
    h["ETag"] = p[1]
    inm = ",".join(header(scope, b"if-none-match"))
    if inm and any(x.strip().removeprefix("W/") == p[1][2:] for x in inm.split(",")):
        return Response(b"", 304, {**h, **NOSNIFF, "Cache-Control": "private, no-cache"})
    body = p[0]
    if len(body) > 1400 and accepts_gzip(scope):
        if p[2] is None:
            p[2] = gzip.compress(body, 5)
        body = p[2]
        h["Content-Encoding"] = "gzip"
    return reply(body, 200, h, "private, no-cache")


async def do_describe(scope, caller):
    e, old = await may_discover(caller)
    name = one(query(scope), "name", "missing_parameter")
    if not name:
        raise Err("missing_parameter", "The parameter name is missing.")
    t = e.catalog.tools.get(name)
    if t is None:
        raise not_found(name)
    return reply(b'{"tool":' + t.json + b"}", 200, shown(old), "private, no-cache")


async def do_invoke(scope, receive, caller):
    if caller.cookie and not caller.origin_ok:
        raise Err("access_denied", "A request with a session from another origin is refused.")
    json_only(scope)
    raw = await read_body(scope, receive)

    async def go():
        e, _ = await catalog_of(caller)
        try:
            m = split(decode(raw))
        except Bad as b:
            raise Err("invalid_json", "The body is not valid JSON: %s." % b)
        if m is None:
            raise Err("invalid_json", "The body is no JSON object.")
        name = m["name"][0] if "name" in m else None
        if not isinstance(name, str) or not name:
            raise Err("missing_parameter", "The parameter name is missing: it has to be a text that is not empty.")
        if any("\ud800" <= ch <= "\udfff" for ch in name):
            raise Err("invalid_request", "The parameter name is no valid text.")
        if "arguments" not in m or not isinstance(m["arguments"][0], dict):
            raise Err("missing_parameter", "The parameter arguments is missing: it has to be an object.")
        args, text = m["arguments"]
        _, result, _ = await call(caller, e, name, args, text)
        return b'{"result":' + result.encode("utf-8", "surrogatepass") + b"}"
    body = await while_connected(receive, go())
    return reply(body)


def say(v):
    return "; ".join("%s: expected %s, received %s" % (o["parameter"], o["expected"], o["received"]) for o in v)


CONFORM = re.compile(r"The (\S+) parameter does not conform to the parameter schema\.")


async def call(caller, e, name, args, text, extra=()):
    t = e.catalog.tools.get(name)
    if t is None:
        raise not_found(name)
    try:
        wrong = violations(t.validator, args)
    except RecursionError:
        wrong = [{"parameter": "arguments", "expected": "a smaller value", "received": "nested values"}]
    if wrong:
        raise Err("invalid_params", "The arguments of %s are not valid: %s." % (name, say(wrong)),
                  wrong[0] if len(wrong) == 1 else wrong)
    trace = dict(caller.trace)
    trace.update(extra)
    kind, a, b = await rpc(caller, t.name, text, trace)
    if kind == "error":
        raise site_error(caller, t, a, b)
    if t.loose is not None:
        try:
            ok = t.loose.is_valid(b)
        except RecursionError:
            ok = False
        if not ok:
            raise Err("execution_error", "The tool %s returned a result that does not conform to its output schema." % name)
    return t, a, b


def site_error(caller, t, e, members):
    code = e["code"]
    msg = e.get("message")
    msg = msg if isinstance(msg, str) and msg else "the site gave no reason"
    data = e.get("data")
    raw = members["data"][1] if "data" in members else None
    if code == -32600 and isinstance(data, str) and data.startswith("Access Denied"):
        return Err("access_denied", "The site denies this caller the tool %s." % t.name)
    if code == -32601:
        expire(caller, t.name)
        return not_found(t.name)
    if code == -32602:
        expire(caller)
        m = CONFORM.match(data) if isinstance(data, str) else None
        if m:
            return Err("invalid_params", "The arguments of %s are not valid: %s does not conform to its schema." % (t.name, m[1]),
                       {"parameter": m[1], "expected": "a value that the site accepts", "received": "a value that it refuses",
                        "jsonrpc_code": code})
        head = '{"jsonrpc_code":%d' % code
        m = re.match(r"Missing required parameter: (\S+)", data) if isinstance(data, str) else None
        if m:
            head += ',"parameter":%s,"expected":"a value","received":"nothing"' % json.dumps(m[1])
        if raw is not None:
            head += ',"jsonrpc_data":' + raw
        why = ": " + data if isinstance(data, str) and len(data) < 500 else ""
        return Err("invalid_params", "The tool %s refuses its arguments: %s%s" % (t.name, msg, why), raw_data=head + "}")
    head = '{"jsonrpc_code":%d' % code
    if raw is not None and code != -32603:
        head += ',"jsonrpc_data":' + raw
    return Err("execution_error", "The tool %s failed: %s" % (t.name, msg), raw_data=head + "}")


async def do_invalidate(caller):
    if caller.cookie and not caller.origin_ok:
        raise Err("access_denied", "A request with a session from another origin is refused.")
    _, _, admin = await fetch(caller)
    if not admin:
        raise Err("access_denied", "This caller may not empty the cache.")
    invalidate()
    return Response(b"", 204, {**NOSNIFF, "Cache-Control": "no-store"})


if __name__ == "__main__":
    sys.modules["bridge"] = sys.modules["__main__"]
import mcp_http as mcp  # noqa: E402


async def route(scope, receive):
    path, method = scope["path"], scope["method"]
    try:
        if path == "/mcp":
            return await mcp.handle(scope, receive)
        allow = {"/mcp/tools/list": "GET, HEAD", "/mcp/tools/describe": "GET, HEAD", "/mcp/tools/invoke": "POST",
                 "/mcp/admin/invalidate": "POST"}.get(path)
        if allow is None:
            raise Err("not_found", "There is nothing at this path.")
        if method not in allow.split(", "):
            raise Err("method_not_allowed", "The method %s is not allowed here, but %s." % (method[:20], allow), headers=[("Allow", allow)])
        caller = Caller(scope)
        if path == "/mcp/tools/list":
            return await while_connected(receive, do_list(scope, caller))
        if path == "/mcp/tools/describe":
            return await while_connected(receive, do_describe(scope, caller))
        if path == "/mcp/tools/invoke":
            return await do_invoke(scope, receive, caller)
        return await do_invalidate(caller)
    except Err as e:
        if e.status >= 500:
            log("%s %s: %d %s" % (method, path[:60], e.status, e.code))
        return failure(e)
    except Gone:
        return None
    except Exception as e:
        log("%s %s: internal error: %s" % (method, path[:60], type(e).__name__))
        return failure(Err("internal_error", "The bridge failed."))


async def endpoint(scope, receive, send):
    if scope["type"] != "http":
        return
    r = await route(scope, receive)
    if r is not None:
        await r(scope, receive, send)


async def startup():
    global http
    http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                                 timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(1.0, TIMEOUT)),
                                 cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, read_bufsize=1 << 17,
                                 headers={"User-Agent": "%s/%s" % (NAME, VERSION), "Accept-Encoding": "gzip"})


async def shutdown():
    await http.close()


app = Starlette(routes=[Mount("/", app=endpoint)], on_startup=[startup], on_shutdown=[shutdown])


class Server(uvicorn.Server):
    def handle_exit(self, sig, frame):
        mcp.stop()
        super().handle_exit(sig, frame)


if __name__ == "__main__":
    cfg = uvicorn.Config(app, host=HOST or "127.0.0.1", port=int(PORT), log_level="warning",
                         access_log=False, server_header=False, timeout_keep_alive=75, backlog=4096, lifespan="on",
                         ws="none", http="httptools")  # with h11 no route matches a target in absolute form
    log("%s %s: the site is %s" % (NAME, VERSION, urlsplit(SITE).netloc))
    Server(cfg).run()
