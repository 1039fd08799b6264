"""A bridge: it offers the JSON-RPC methods of a Drupal site as tools, over three HTTP endpoints."""

import gzip
import hashlib
import os
import re
import sys
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import drupal
import jsontext
from failure import Failure, not_found

PAGE_SIZE = int(os.environ.get("BRIDGE_PAGE_SIZE", 50))
MAX_BODY = 2 << 20


def list_tools(caller):
    tools = list(discover(caller).values())
    # A cursor holds the position and a version of the list, so that an old one is refused (list/change-between-pages).
    version = hashlib.sha256(jsontext.encode([tool["name"] for tool in tools])).hexdigest()[:12]
    cursor = re.fullmatch(r"([0-9a-f]{12})\.([0-9]{1,9})", caller.parameter("cursor") or f"{version}.0")
    if not cursor or cursor[1] != version:
        raise Failure(400, "invalid_cursor", "The cursor is not one of this list: begin at the first page.")
    offset = int(cursor[2])
    page = {"tools": tools[offset : offset + PAGE_SIZE]}
    if offset + PAGE_SIZE < len(tools):  # list/page-boundary-exact
        page["nextCursor"] = f"{version}.{offset + PAGE_SIZE}"
    return page


def describe(caller):
    tools = discover(caller)  # before the name: permission comes first (errors/precedence)
    name = caller.parameter("name")
    if not name:
        raise Failure(400, "missing_parameter", "The parameter name is missing.")
    if name not in tools:
        raise not_found(name)
    return {"tool": tools[name]}


def invoke(caller):
    body = caller.body()
    # The discovery permission is not asked for: who may run a tool may do so by its name (access/discovery-not-execution).
    tools, _ = drupal.tools(caller)
    if not re.match(r"(?i)application/json\s*(;|$)", caller.received("Content-Type")):
        raise Failure(415, "unsupported_media_type", "The body has to be application/json.")
    try:
        call = jsontext.parse(body)
    except ValueError as error:
        raise Failure(400, "invalid_json", f"The body is not JSON: {error}") from None
    name, arguments = (call.get("name"), call.get("arguments")) if isinstance(call, dict) else (None, None)
    if not isinstance(name, str) or not name:
        raise Failure(400, "missing_parameter", "The parameter name is missing, or no string.")
    if not isinstance(arguments, dict):
        raise Failure(400, "missing_parameter", "The parameter arguments is missing, or no object.")
    if name not in tools:
        raise not_found(name)
    return {"result": drupal.call(caller, tools[name], arguments)}  # the site decides, and validates the arguments


def discover(caller):
    tools, may_discover = drupal.tools(caller)
    if not may_discover:
        # access/list-403
        raise Failure(403, "access_denied", "The site does not say that you may discover tools (meta.mcp.discovery).")
    return tools


ENDPOINTS = {
    "/mcp/tools/list": (list_tools, ("GET", "HEAD")),
    "/mcp/tools/describe": (describe, ("GET", "HEAD")),
    "/mcp/tools/invoke": (invoke, ("POST",)),
}


class Caller(BaseHTTPRequestHandler):
    """A connection of a caller, and the request that it is sending. Every response passes through respond."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one packet for head and body
    timeout = 180  # http/slow-client; longer than proxies keep their connections, which would send on one that closes

    def respond(self):
        length = self.received("Content-Length") or "0"
        self.has_length = length.isdecimal() and "Transfer-Encoding" not in self.headers
        self.unread = int(length) if self.has_length else 0
        self.close_connection |= not self.has_length
        self.path, _, query = self.path.partition("?")
        self.query = parse_qs(query, keep_blank_values=True)
        self.forwarded = {name: self.headers[name] for name in ("Authorization", "Accept-Language") if name in self.headers}
        try:
            endpoint, verbs = ENDPOINTS.get(self.path, (None, ()))
            if not endpoint:
                raise Failure(404, "not_found", f"There is no path {self.path}.")
            if self.command not in verbs:
                raise Failure(405, "method_not_allowed", f"{self.path} does not take {self.command}.",
                              headers={"Allow": ", ".join(verbs)})
            self.send(200, endpoint(self))
        except Failure as failure:
            error = {"code": failure.code, "message": failure.message}
            if failure.data is not None:
                error["data"] = failure.data
            self.send(failure.status, {"error": error}, failure.headers)
        except Exception:
            traceback.print_exc()
            self.send(500, {"error": {"code": "internal_error", "message": "The bridge failed."}})

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = respond

    def send_error(self, code, message=None, explain=None):
        """What http.server refuses by itself, such as a request line that is too long."""
        self.unread, self.close_connection = 0, True
        self.send(code, {"error": {"code": "invalid_request", "message": message or "The request is malformed."}})

    def send(self, status, body, headers=None):
        self.discard()
        data = jsontext.encode(body)
        self.send_response(status)
        if self.close_connection:
            self.send_header("Connection", "close")
        if len(data) > 1024 and re.search(r"(?i)\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", self.received("Accept-Encoding")):
            data = gzip.compress(data, 5)
            self.send_header("Content-Encoding", "gzip")
        for name, value in {
            **(headers or {}), "Content-Type": "application/json", "Content-Length": len(data), "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding",
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def received(self, name):
        return getattr(self, "headers", {}).get(name) or ""

    def parameter(self, name):
        """The value of a query parameter; `name[]=x` is another parameter (describe/name-not-scalar)."""
        values = self.query.get(name, [None])
        if len(values) > 1:
            raise Failure(400, "invalid_request", f"The parameter {name} is repeated.")
        return values[0]

    def body(self):
        if not self.has_length:
            raise Failure(400, "invalid_request", "The body has to come with its Content-Length.")
        if self.unread > MAX_BODY:
            raise Failure(413, "request_too_large", f"The body is longer than {MAX_BODY} bytes.")
        body, self.unread = self.rfile.read(self.unread), 0
        return body

    def discard(self):
        """Reads what is left of the body: the connection stays usable (http/keep-alive-after-error)."""
        while self.unread > 0:
            chunk = self.rfile.read(min(self.unread, 1 << 16))
            self.unread = self.unread - len(chunk) if chunk else 0

    def log_message(self, *_):
        """Nothing: the log has what is left out and what fails."""


class Server(ThreadingHTTPServer):
    request_queue_size = 128


if __name__ == "__main__":
    if drupal.SITE.scheme not in ("http", "https") or not drupal.SITE.hostname or drupal.SITE.username:
        sys.exit("DRUPAL_URL has to be the URL of the site, such as https://example.org, without user and password")
    listen = re.fullmatch(r"\[?(.*?)\]?:(\d+)", os.environ.get("BRIDGE_LISTEN", "127.0.0.1:8081"))
    if not listen:
        sys.exit("BRIDGE_LISTEN has to be HOST:PORT, such as 127.0.0.1:8081")
    Server((listen[1], int(listen[2])), Caller).serve_forever()
