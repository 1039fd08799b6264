"""The Drupal site: its methods, and calls of them. Every request is made as the caller (access/credentials-forwarded)."""

import functools
import http.client
import itertools
import os
import re
import select
import socket
import threading
import time
from urllib.parse import urlsplit

import jsontext
from failure import Failure, not_found
from tools import tools_of

SITE = urlsplit(os.environ.get("DRUPAL_URL", ""))  # the only host that is ever called (upstream/no-ssrf)
TIMEOUT = float(os.environ.get("BRIDGE_UPSTREAM_TIMEOUT", 10))
MAX_BYTES = 8 << 20  # upstream/huge-answer

_ids = itertools.count(1)
_idle = []  # connections that can be used again (upstream/pooled)


def tools(caller):
    """The tools that the caller may run, by name, and whether the caller may discover them."""
    status, found = _exchange(caller, "GET", "/jsonrpc/methods", read=_found)
    if status != 200 or not found:
        raise _unusable(status)
    return found


@functools.lru_cache(maxsize=8)  # a site's list comes again and again; nothing changes what is made of it
def _found(text):
    body = jsontext.parse(text)
    if not isinstance(body, dict) or not isinstance(body.get("data"), list):
        return None
    found = tools_of(method for method in body["data"] if isinstance(method, dict))
    try:
        return found, body["meta"]["mcp"]["discovery"] is True
    except (KeyError, TypeError):  # the site does not say it
        return found, False


def call(caller, tool, arguments):
    """Calls a method, once: nothing here tries again (invoke/runs-once)."""
    request = {"jsonrpc": "2.0", "id": next(_ids), "method": tool["name"], "params": arguments}
    status, body = _exchange(caller, "POST", "/jsonrpc", request)
    if not isinstance(body, dict) or ("error" in body) == ("result" in body):
        raise _unusable(status)
    if isinstance(body.get("error"), dict) and body.get("id") in (None, request["id"]):
        # Drupal sends errors without the id, under 200, 400 and 500 (upstream/id-mismatch, upstream/error-any-status).
        raise _failed(tool, arguments, **{"code": None, "message": "", "data": None, **body["error"]})
    if "result" in body and status == 200 and body.get("id") == request["id"]:
        return body["result"]
    raise _unusable(status)


def _failed(tool, arguments, code, message, data, **_):
    name = tool["name"]
    if code == -32601:
        return not_found(name)
    if code == -32600 and str(data).startswith("Access Denied"):
        return Failure(403, "access_denied", f"You may not run {name}.")
    # Drupal's own text on an argument has PHP's class names in it: only the name is taken (invoke/invalid-arguments-named).
    refused = re.match(r"The (.+?) parameter does not conform |Missing required parameter: (.+)$", str(data))
    if code == -32602 and refused:
        parameter = refused[1] or refused[2]
        expected = tool["inputSchema"]["properties"].get(parameter)
        fault = "not valid" if refused[1] else "missing"
        return Failure(400, "invalid_params", f"The argument {parameter} of {name} is {fault}.",
                       {"parameter": parameter, "expected": expected, "received": arguments.get(parameter)})
    details = {"jsonrpc_code": code}
    if code != -32603:  # its data is PHP's own text (invoke/no-trace-leak)
        details["jsonrpc_data"] = data
    if code == -32602:
        return Failure(400, "invalid_params", f"The tool {name} refused its arguments: {message}", details)
    return Failure(500, "execution_error", f"The tool {name} failed: {message}", details)


def _exchange(caller, verb, path, message=None, read=jsontext.parse):
    """One exchange with the site. Gives the status and what is read of the body, or None for a body that is not JSON."""
    headers, body = {**caller.forwarded, "Accept": "application/json"}, None
    if message is not None:
        headers["Content-Type"] = "application/json"
        body = jsontext.encode(message)
    connection = _connection()
    try:
        if connection.sock is None:
            connection.connect()
        with _Watch(caller.connection, connection.sock) as watch:
            status = 502
            try:
                connection.request(verb, SITE.path.rstrip("/") + path, body, headers)
                response = connection.getresponse()
                status = response.status
                text = response.read(MAX_BYTES + 1)
                if len(text) > MAX_BYTES or response.length:  # too long, or cut off
                    raise http.client.IncompleteRead(text)
            except (OSError, http.client.HTTPException):
                if watch.late:
                    raise Failure(504, "upstream_timeout", "The site did not respond in time.") from None
                raise _unusable(status) from None
    except Failure:
        connection.close()
        raise
    except TimeoutError:
        raise Failure(504, "upstream_timeout", "The site did not respond in time.") from None
    except OSError:
        raise Failure(503, "upstream_unavailable", "The site cannot be reached.") from None
    if connection.sock:  # else the site has closed it
        _idle.append(connection)
    if status == 401:
        challenge = response.headers.get("WWW-Authenticate")
        raise Failure(401, "authentication_required", "The site asks for credentials.",
                      headers={"WWW-Authenticate": challenge} if challenge else {})
    if status == 403:
        raise Failure(403, "access_denied", "The site refuses this caller.")
    try:
        return status, read(text)
    except ValueError:
        return status, None


def _connection():
    while _idle:
        connection = _idle.pop()
        if not select.select([connection.sock], [], [], 0)[0]:  # else the site has closed it, or sent what nobody asked for
            return connection
        connection.close()
    kind = http.client.HTTPSConnection if SITE.scheme == "https" else http.client.HTTPConnection
    return kind(SITE.hostname, SITE.port, timeout=TIMEOUT)


class _Watch:
    """Ends an exchange when its time is over, however slowly bytes still come (upstream/timeout), or when the caller has gone
    (upstream/cancel): the time-out of a socket is one for each read."""

    def __init__(self, caller, site):
        self.caller, self.site = caller, site
        self.late, self.done = False, threading.Event()

    def __enter__(self):
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.done.set()

    def _watch(self):
        end = time.monotonic() + TIMEOUT
        while not self.done.wait(0.05):
            self.late = time.monotonic() > end
            try:
                if self.late or self._caller_has_gone():
                    return self.site.shutdown(socket.SHUT_RDWR)
            except OSError:  # one of the two has just been closed
                return None

    def _caller_has_gone(self):
        readable = select.select([self.caller], [], [], 0)[0]
        return bool(readable) and self.caller.recv(1, socket.MSG_PEEK) == b""


def _unusable(status):
    if status == 503:
        return Failure(503, "upstream_unavailable", "The site says that it is not available.")
    return Failure(502, "upstream_error", "The site's response is not usable.")
