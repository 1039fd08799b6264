"""A bridge: the JSON-RPC methods of a Drupal site as tools. Python 3.11, standard library only.

The settings are DRUPAL_URL, BRIDGE_LISTEN, BRIDGE_DISCOVERY_TTL, BRIDGE_PERMISSION_TTL, BRIDGE_UPSTREAM_TIMEOUT,
BRIDGE_PAGE_SIZE and BRIDGE_CLOCK in the environment. Run it with: python3 bridge.py
"""

import gzip
import hashlib
import http.client
import io
import os
import sys
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jsontext
import validation
from catalog import Cache
from failure import Failure
from upstream import Caller, CallerGone, PatientReader, Site

MAX_BODY = 2 << 20
CLIENT_TIMEOUT = 30.0  # for a request to arrive, and between two requests
LIST, DESCRIBE, INVOKE = "/mcp/tools/list", "/mcp/tools/describe", "/mcp/tools/invoke"
VERBS = {LIST: "GET, HEAD", DESCRIBE: "GET, HEAD", INVOKE: "POST"}


class Bridge:
    """The three endpoints. Each returns the text of a response, and headers of its own."""

    def __init__(self, environment: dict[str, str]):
        def setting(name: str, default: float) -> float:
            return float(environment.get(name) or default)

        self.site = Site(environment["DRUPAL_URL"], setting("BRIDGE_UPSTREAM_TIMEOUT", 30))
        self.page_size = int(setting("BRIDGE_PAGE_SIZE", 50))
        ttl = min(setting("BRIDGE_DISCOVERY_TTL", 300), setting("BRIDGE_PERMISSION_TTL", 60))
        self.cache = Cache(self.site.methods, ttl, environment.get("BRIDGE_CLOCK", ""))

    def list_tools(self, caller: Caller, query: str) -> tuple[str, dict[str, str]]:
        catalog, headers = self._discover(caller)
        page = catalog.page(_parameter(query, "cursor"), self.page_size)
        return page, headers | {"ETag": f'W/"{hashlib.sha256(page.encode()).hexdigest()[:32]}"'}

    def describe(self, caller: Caller, query: str) -> tuple[str, dict[str, str]]:
        catalog, headers = self._discover(caller)
        name = _parameter(query, "name")
        if not name:
            raise Failure(400, "missing_parameter", "The parameter name is missing.")
        return f'{{"tool":{catalog.find(name).text}}}', headers

    def invoke(self, caller: Caller, body: bytes, connection: Any) -> tuple[str, dict[str, str]]:
        catalog, _ = self.cache.get(caller)  # first: a caller without permission learns nothing else
        try:
            request, text = jsontext.decode(body)
        except ValueError as problem:
            raise Failure(400, "invalid_json", f"The body is not JSON: {problem}") from None
        if not isinstance(request, dict):
            raise Failure(400, "invalid_json", "The body is not an object.")
        name = request.get("name")
        if not isinstance(name, str) or not name:
            raise Failure(400, "missing_parameter", "name is missing, or not a string.")
        if not isinstance(request.get("arguments"), dict):
            raise Failure(400, "missing_parameter", "arguments is missing, or not an object.")
        tool = catalog.find(name)
        wrong = validation.errors(tool.input_schema, request["arguments"])
        if wrong:
            texts = [f"{error['parameter']}: expected {error['expected']}, got {error['received']}" for error in wrong]
            raise Failure(400, "invalid_params", "; ".join(texts), wrong[0] if len(wrong) == 1 else wrong)
        try:
            result = self.site.call(caller, tool.name, jsontext.members(text)["arguments"], connection)
        except Failure as failure:
            if failure.code in ("tool_not_found", "invalid_params"):
                self.cache.expire(caller)
            raise
        return f'{{"result":{result}}}', {}

    def _discover(self, caller: Caller) -> tuple[Any, dict[str, str]]:
        catalog, stale = self.cache.get(caller)
        if not catalog.may_discover:
            raise Failure(403, "access_denied", "This caller may not discover tools.")
        return catalog, {"Warning": '110 - "Response is Stale"'} if stale else {}


def _parameter(query: str, name: str) -> str:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, errors="strict")).get(name, "")
    except ValueError:
        raise Failure(400, "invalid_request", "The query is not UTF-8.") from None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bridge", ""
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = CLIENT_TIMEOUT
    server: "Server"

    def setup(self) -> None:
        super().setup()
        self.patient = PatientReader(self.connection)
        self.rfile = io.BufferedReader(self.patient)

    def handle_one_request(self) -> None:
        self.patient.deadline = time.monotonic() + CLIENT_TIMEOUT
        super().handle_one_request()

    def serve(self) -> None:
        try:
            body = self._body()
            text, headers = self._route(body)
            status = 200
        except Failure as failure:
            status, text, headers = failure.status, jsontext.encode(failure.body()), list(failure.headers)
        except CallerGone:
            self.close_connection = True
            return
        except Exception:
            traceback.print_exc(file=sys.stderr)
            failure = Failure(500, "internal_error", "The bridge failed.")
            status, text, headers = 500, jsontext.encode(failure.body()), {}
        self._send(status, text, headers)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = serve

    def _route(self, body: bytes) -> tuple[str, dict[str, str]]:
        bridge = self.server.bridge
        try:
            path, query = urlsplit(self.path)[2:4]
        except ValueError:
            raise Failure(400, "invalid_request", "The address is malformed.") from None
        verbs = VERBS.get(path)
        if not verbs:
            raise Failure(404, "not_found", "There is nothing at this address.")
        if self.command not in verbs.split(", "):
            raise Failure(405, "method_not_allowed", f"Only {verbs} is allowed here.", headers=(("Allow", verbs),))
        header = self.headers.get
        caller = Caller(header("Authorization"), header("Cookie"), header("Accept-Language"))
        if path == INVOKE:
            self._refuse_forgery(caller)
            return bridge.invoke(caller, body, self.connection)
        return bridge.list_tools(caller, query) if path == LIST else bridge.describe(caller, query)

    def _refuse_forgery(self, caller: Caller) -> None:
        """A page of another site can make a browser send a form with the session cookie."""
        if caller.cookie is None:
            return
        if self.headers.get_content_type() != "application/json" or "Content-Type" not in self.headers:
            raise Failure(415, "unsupported_media_type", "With a session, the body must be application/json.")
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != self.headers.get("Host", "").lower():
            raise Failure(403, "access_denied", "With a session, requests of another site are refused.")

    def _body(self) -> bytes:
        """Read the body, also one that is not used: the next request begins behind it."""
        lengths = set(self.headers.get_all("Content-Length") or ["0"])
        length = lengths.pop()
        if lengths or "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            self.close_connection = True
            raise Failure(400, "invalid_request", "The body needs one Content-Length.")
        if int(length) > MAX_BODY:
            self.close_connection = True
            raise Failure(413, "request_too_large", f"The body is longer than {MAX_BODY} bytes.")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise CallerGone
        return body

    def _send(self, status: int, text: str, headers: Any) -> None:
        headers = headers.items() if isinstance(headers, dict) else headers
        body = text.encode()
        known = (self.headers.get("If-None-Match") or "").split(",")
        if status == 200 and dict(headers).get("ETag") in map(str.strip, known):
            status, body = 304, b""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Cache-Control", "private, no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Vary", "Accept-Encoding")
        if status != 304:
            if len(body) > 1024 and self._accepts_gzip():
                body = gzip.compress(body, 3)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _accepts_gzip(self) -> bool:
        for part in (self.headers.get("Accept-Encoding") or "").lower().split(","):
            coding, _, weight = part.replace(" ", "").partition(";q=")
            if coding == "gzip":
                return weight.strip("0.") != "" or weight == ""
        return False

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what http.server itself cannot read; its own page would be HTML."""
        self.close_connection = True
        self.headers = getattr(self, "headers", None) or http.client.HTTPMessage()
        failure = Failure(code, "invalid_request", message or "The request is malformed.")
        self._send(code, jsontext.encode(failure.body()), {})

    def log_message(self, format: str, *args: Any) -> None:
        pass  # addresses can hold secrets


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # 5 by default: connections that come at once would wait for a second

    def __init__(self, address: tuple[str, int], bridge: Bridge):
        super().__init__(address, Handler)
        self.bridge = bridge

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a client that has gone is no error
            super().handle_error(request, client_address)


def main() -> None:
    host, _, port = os.environ.get("BRIDGE_LISTEN", "127.0.0.1:8081").rpartition(":")
    Server((host.strip("[]"), int(port)), Bridge(dict(os.environ))).serve_forever()


if __name__ == "__main__":
    main()
