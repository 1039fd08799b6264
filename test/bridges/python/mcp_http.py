"""MCP over Streamable HTTP: 2025-06-18 and 2025-11-25 with sessions, 2026-07-28 without."""
import asyncio, base64, json, re, secrets, time
from collections import OrderedDict
from decimal import Decimal
from starlette.responses import Response, StreamingResponse
import bridge as B
from util import Bad, decode, split, jbytes, dump, coerce

LEGACY = ["2025-11-25", "2025-06-18"]
MODERN = "2026-07-28"
VERSIONS = [MODERN] + LEGACY
P = "io.modelcontextprotocol/"
INFO = {"name": B.NAME, "version": B.VERSION, "title": "Drupal tools"}
TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*")

sessions = OrderedDict()
stopping = False


def stop():
    global stopping
    stopping = True


class Session:
    __slots__ = ("ident", "version")

    def __init__(self, ident, version):
        self.ident, self.version = ident, version


class Rpc(Exception):
    def __init__(self, code, message, status=200, data=None, headers=()):
        super().__init__(message)
        self.code, self.message, self.status, self.data, self.headers = code, message, status, data, headers


def envelope(rid, body):
    return b'{"jsonrpc":"2.0","id":' + rid.encode() + b"," + body + b"}"


def rpc_error(rid, e):
    o = {"code": e.code, "message": e.message}
    if e.data is not None:
        o["data"] = e.data
    return B.reply(envelope(rid, b'"error":' + dump(o).encode()), e.status, e.headers)


def as_rpc(err):
    """An error of the tools API as one of the protocol."""
    code = {400: -32600, 401: -32001, 403: -32003}.get(err.status, -32603)
    return Rpc(code, err.message, err.status, headers=err.headers)


async def handle(scope, receive):
    method = scope["method"]
    caller = B.Caller(scope)
    if not caller.origin_ok:
        return rpc_error("null", Rpc(-32600, "A request from this origin is refused.", 403))
    if method == "POST":
        return await post(scope, receive, caller)
    version = B.header(scope, b"mcp-protocol-version")
    if method in ("GET", "DELETE") and not (version and version[0] == MODERN):
        if version and version[0] not in VERSIONS:
            return rpc_error("null", Rpc(-32600, "The protocol version is not supported.", 400))
        try:
            sid, _ = session(scope, caller)
        except Rpc as e:
            return rpc_error("null", e)
        if method == "DELETE":
            sessions.pop(sid, None)
            return Response(b"", 204, B.NOSNIFF)
        if "text/event-stream" not in ",".join(B.header(scope, b"accept")) and "*/*" not in ",".join(B.header(scope, b"accept")):
            return rpc_error("null", Rpc(-32600, "The stream is text/event-stream.", 406))
        return stream(caller, sid)
    raise B.Err("method_not_allowed", "The method is not allowed here.", headers=[("Allow", "POST, GET, DELETE")])


def session(scope, caller):
    h = B.header(scope, b"mcp-session-id")
    if not h:
        raise Rpc(-32600, "The header Mcp-Session-Id is missing: initialize first.", 400)
    s = sessions.get(h[0])
    if s is None or s.ident != caller.ident:
        raise Rpc(-32600, "There is no such session.", 404)
    sessions.move_to_end(h[0])
    return h[0], s


EVENTS = {**B.NOSNIFF, "Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def event(o):
    return b"event: message\ndata: " + jbytes(o) + b"\n\n"


async def changes(caller, alive):
    """Yields whenever the caller's tools changed."""
    last = None
    try:
        e, _ = await B.catalog_of(caller)
        last = (e.catalog.content, e.discovery)
    except B.Err:
        pass
    quiet = time.monotonic()
    while alive() and not stopping:
        await asyncio.sleep(0.1)
        if time.monotonic() - quiet > 15:
            quiet = time.monotonic()
            yield False
        k = B.entries.get(caller.key)
        if k is not None and not k.expired and 0 <= B.now() - k.at < B.TTL and (k.catalog.content, k.discovery) == last:
            continue
        try:
            e, old = await B.catalog_of(caller)
        except B.Err as err:
            if err.status in (401, 403) and last is not None:
                last = None
                yield True
            else:
                await asyncio.sleep(0.3)
            continue
        if old is not None:
            await asyncio.sleep(0.3)
            continue
        state = (e.catalog.content, e.discovery)
        if state != last:
            last = state
            yield True


def stream(caller, sid):
    async def body():
        yield b": open\n\n"
        async for changed in changes(caller, lambda: sid in sessions):
            yield event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) if changed else b": \n\n"
    return StreamingResponse(body(), 200, EVENTS)


def listen(caller, rid, wanted):
    meta = {P + "subscriptionId": json.loads(rid)}
    agreed = {"toolsListChanged": True} if wanted else {}

    async def body():
        yield event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                     "params": {"_meta": meta, "notifications": agreed}})
        if wanted:
            async for changed in changes(caller, lambda: True):
                yield event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                             "params": {"_meta": meta}}) if changed else b": \n\n"
        else:
            while not stopping:
                await asyncio.sleep(0.2)
        yield event({"jsonrpc": "2.0", "id": json.loads(rid), "result": {"resultType": "complete", "_meta": meta}})
    return StreamingResponse(body(), 200, EVENTS)


async def post(scope, receive, caller):
    rid = "null"
    try:
        try:
            B.json_only(scope)
            raw = await B.read_body(scope, receive)
        except B.Err as e:
            raise Rpc(-32600, e.message, e.status)
        try:
            m = split(decode(raw))
        except Bad as b:
            raise Rpc(-32700, "The body is not valid JSON: %s." % b, 400)
        if m is None:
            raise Rpc(-32600, "The body is no JSON-RPC message.", 400)
        if "id" in m:
            v, text = m["id"]
            if isinstance(v, bool) or not isinstance(v, (str, int, Decimal)):
                raise Rpc(-32600, "The id has to be a text or a number.", 400)
            rid = text
        version = B.header(scope, b"mcp-protocol-version")
        version = version[0] if version else None
        method = m["method"][0] if "method" in m else None
        if m.get("jsonrpc", (None,))[0] != "2.0" or not isinstance(method, str):
            if "method" not in m and "id" in m and ("result" in m or "error" in m):
                return Response(b"", 202, B.NOSNIFF)
            raise Rpc(-32600, "The message is no request of JSON-RPC 2.0.", 400)
        try:
            params = split(m["params"][1]) if "params" in m else {}
        except Bad as b:
            raise Rpc(-32700, str(b), 400)
        if params is None:
            raise Rpc(-32602, "params has to be an object.", 400)
        meta = params["_meta"][0] if "_meta" in params else None
        named = meta.get(P + "protocolVersion") if isinstance(meta, dict) else None
        if version is not None and version not in VERSIONS:
            raise Rpc(-32022, "The protocol version %s is not supported." % version[:40], 400,
                      {"supported": VERSIONS, "requested": version[:40]})
        if version == MODERN or version is None and named is not None and method != "initialize":
            return await modern(scope, receive, caller, rid, method, params, meta, named, version, "id" in m)
        return await legacy(scope, caller, rid, method, params, "id" in m)
    except Rpc as e:
        return rpc_error(rid, e)
    except B.Err as e:
        return rpc_error(rid, as_rpc(e))


async def legacy(scope, caller, rid, method, params, is_request):
    if method == "initialize" and is_request:
        asked = params["protocolVersion"][0] if "protocolVersion" in params else None
        if not isinstance(asked, str):
            raise Rpc(-32602, "protocolVersion is missing.", 200)
        try:
            await B.catalog_of(caller)
        except B.Err as e:
            if e.status in (401, 403):
                raise
        v = asked if asked in LEGACY else LEGACY[0]
        sid = secrets.token_urlsafe(24)
        sessions[sid] = Session(caller.ident, v)
        while len(sessions) > 20000:
            sessions.popitem(last=False)
        body = jbytes({"protocolVersion": v, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": INFO})
        return B.reply(envelope(rid, b'"result":' + body), 200, [("Mcp-Session-Id", sid)])
    session(scope, caller)
    if not is_request:
        return Response(b"", 202, B.NOSNIFF)
    if method == "ping":
        return B.reply(envelope(rid, b'"result":{}'))
    if method == "tools/list":
        return B.reply(envelope(rid, b'"result":{' + await tools_list(caller, params, 200) + b"}"))
    if method == "tools/call":
        return B.reply(envelope(rid, b'"result":' + await tools_call(caller, params, 200, {}, b"", b"")))
    raise Rpc(-32601, "There is no method %s." % method[:100])


async def tools_list(caller, params, status):
    e, _ = await B.may_discover(caller)
    offset = 0
    if "cursor" in params:
        c = params["cursor"][0]
        if c != "":
            try:
                offset = B.offset_of(e.catalog, c)
            except B.Err as err:
                raise Rpc(-32602, err.message, status)
    return B.page(e.catalog, offset, "mcp")[0]


def text_result(body, text, error=False, structured=None, close=b""):
    out = b'{%s"content":[{"type":"text","text":%s}]' % (body, jbytes(text))
    if structured is not None:
        out += b',"structuredContent":' + structured.encode("utf-8", "surrogatepass")
    if error:
        out += b',"isError":true'
    return out + close + b"}"


async def tools_call(caller, params, status, extra, head, tail):
    name = params["name"][0] if "name" in params else None
    if not isinstance(name, str) or not name or any("\ud800" <= ch <= "\udfff" for ch in name):
        raise Rpc(-32602, "The parameter name is missing.", status)
    args, text = params["arguments"] if "arguments" in params else ({}, "{}")
    if not isinstance(args, dict):
        raise Rpc(-32602, "The parameter arguments has to be an object.", status)
    e, _ = await B.catalog_of(caller)
    try:
        t, raw, value = await B.call(caller, e, name, args, text, extra)
    except B.Err as err:
        if err.status == 401 or err.status == 403 and "the tool" not in err.message:
            raise
        if err.code in ("tool_not_found", "access_denied"):
            raise Rpc(-32602, err.message, status)
        return text_result(head, err.message, True, close=tail)
    if t.output is None:
        return text_result(head, value if isinstance(value, str) else raw, close=tail)
    fixed = coerce(value, t.output)
    if not t.strict.is_valid(fixed):
        return text_result(head, "The result of %s does not conform to its output schema." % name, True, close=tail)
    out = raw if same(fixed, value) else dump(fixed)
    if t.wrap:
        out = '{"result":' + out + "}"
    return text_result(head, out, structured=out, close=tail)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return not isinstance(b, (list, dict))


def header_value(v):
    m = re.fullmatch(r"=\?base64\?([A-Za-z0-9+/=]*)\?=", v)
    if m:
        try:
            return base64.b64decode(m[1], validate=True).decode("utf-8")
        except ValueError:
            raise Rpc(-32020, "A header is no valid base64.", 400)
    return v


async def modern(scope, receive, caller, rid, method, params, meta, named, version, is_request):
    if not is_request:
        return Response(b"", 202, B.NOSNIFF)

    def mismatch(text):
        raise Rpc(-32020, text, 400)
    if version is None:
        mismatch("The header MCP-Protocol-Version is missing.")
    if not isinstance(meta, dict):
        raise Rpc(-32602, "_meta is missing.", 400)
    if not isinstance(named, str):
        raise Rpc(-32602, "_meta has no protocol version.", 400)
    if named != version:
        mismatch("MCP-Protocol-Version and _meta name different revisions.")
    h = B.header(scope, b"mcp-method")
    if len(h) != 1 or header_value(h[0]) != method:
        mismatch("The header Mcp-Method does not agree with the body.")
    if method in ("tools/call", "prompts/get", "resources/read"):
        want = params.get("uri" if method == "resources/read" else "name", (None,))[0]
        h = B.header(scope, b"mcp-name")
        if len(h) != 1 or header_value(h[0]) != want:
            mismatch("The header Mcp-Name does not agree with the body.")
    info = meta.get(P + "clientInfo")
    if info is not None and not (isinstance(info, dict) and isinstance(info.get("name"), str)):
        raise Rpc(-32602, "_meta names no client.", 400)
    if not isinstance(meta.get(P + "clientCapabilities"), dict):
        raise Rpc(-32602, "_meta has no capabilities of the client.", 400)
    head = b'"resultType":"complete",'
    about = jbytes({P + "serverInfo": INFO})
    tail = b',"_meta":' + about
    private = b',"ttlMs":%d,"cacheScope":"private"' % int(B.TTL * 1000)
    if method == "server/discover":
        try:
            await B.catalog_of(caller)
        except B.Err as e:
            if e.status in (401, 403):
                raise
        body = jbytes({"supportedVersions": VERSIONS, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": INFO})[1:-1]
        return B.reply(envelope(rid, b'"result":{' + head + body + private + tail + b"}"))
    if method == "tools/list":
        body = await B.while_connected(receive, tools_list(caller, params, 400))
        return B.reply(envelope(rid, b'"result":{' + head + body + private + tail + b"}"))
    if method == "tools/call":
        extra = {}
        tp = meta.get("traceparent")
        if isinstance(tp, str) and TRACEPARENT.fullmatch(tp):
            extra["traceparent"] = tp
            ts = meta.get("tracestate")
            extra["tracestate"] = ts if isinstance(ts, str) and re.fullmatch(r"[\x20-\x7e]{0,512}", ts) else ""
        body = await B.while_connected(receive, tools_call(caller, params, 400, extra, head, tail))
        return B.reply(envelope(rid, b'"result":' + body))
    if method == "subscriptions/listen":
        await B.catalog_of(caller)
        want = params["notifications"][0] if "notifications" in params else None
        if not isinstance(want, dict):
            raise Rpc(-32602, "notifications is missing.", 400)
        return listen(caller, rid, want.get("toolsListChanged") is True)
    raise Rpc(-32601, "There is no method %s." % method[:100], 404)
