"""The Drupal site: requests with the caller's own credentials, each sent once and bounded in time and size."""

import http.client
import io
import itertools
import json
import select
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import jsontext
from failure import Failure

MAX_RESPONSE = 16 << 20
MAX_METHODS = 64 << 20


@dataclass(frozen=True)
class Caller:
    """Who calls, as the site will see it. Equal callers see the same tools in the same language."""

    authorization: str | None
    cookie: str | None
    language: str | None

    def headers(self) -> dict[str, str]:
        named = {"Authorization": self.authorization, "Cookie": self.cookie, "Accept-Language": self.language}
        return {name: value for name, value in named.items() if value is not None}


class CallerGone(Exception):
    """The caller has closed the connection: nobody waits for the response."""


class PatientReader(io.RawIOBase):
    """Reads a socket until a deadline, or until the caller has gone."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.raw = sock.makefile("rb", buffering=0)
        self.deadline = 0.0
        self.caller: socket.socket | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._wait()
        return self.raw.readinto(buffer)

    def close(self) -> None:
        self.raw.close()
        super().close()

    def _wait(self) -> None:
        if getattr(self.sock, "pending", int)():  # bytes that TLS has decrypted already
            return
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        if self.caller:
            poll.register(self.caller, select.POLLIN)
        while True:
            left = self.deadline - time.monotonic()
            ready = [fd for fd, _ in poll.poll(left * 1000)] if left > 0 else []
            if not ready:
                raise TimeoutError
            if self.sock.fileno() in ready:
                self.sock.settimeout(left)
                return
            try:
                gone = not self.caller.recv(1, socket.MSG_PEEK)  # type: ignore[union-attr]
            except OSError:
                gone = True
            if gone:
                raise CallerGone
            poll.unregister(self.caller)  # type: ignore[arg-type] # the next request: it waits


class SiteSocket:
    """The part of a socket that http.client uses, with a deadline for each exchange."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.deadline = 0.0
        self.caller: socket.socket | None = None

    def sendall(self, data: bytes) -> None:
        self.sock.settimeout(max(self.deadline - time.monotonic(), 0.001))
        self.sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        reader = PatientReader(self.sock)
        reader.deadline, reader.caller = self.deadline, self.caller
        return io.BufferedReader(reader)

    def unusable(self) -> bool:
        """An idle connection has nothing to read, unless the site has closed it."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        self.sock.close()


class Site:
    def __init__(self, url: str, timeout: float):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("DRUPAL_URL is not an http or https address")
        self.tls, self.host, self.port = parts.scheme == "https", parts.hostname, parts.port
        self.base = parts.path.rstrip("/")
        self.timeout = timeout
        self.ids = itertools.count(1)
        self.idle: list[http.client.HTTPConnection] = []
        self.lock = threading.Lock()

    def methods(self, caller: Caller) -> bytes:
        """Return the site's description of the methods that the caller may run."""
        status, body = self._exchange("GET", "/jsonrpc/methods", caller.headers(), None, MAX_METHODS)
        if status != 200:
            raise unusable()
        return body

    def call(self, caller: Caller, method: str, params: str, connection: socket.socket | None = None) -> str:
        """Run a method once and return the text of its result. The call ends when the caller's connection does."""
        number = next(self.ids)
        request = f'{{"jsonrpc":"2.0","id":{number},"method":{jsontext.encode(method)},"params":{params}}}'
        headers = caller.headers() | {"Content-Type": "application/json"}
        status, body = self._exchange("POST", "/jsonrpc", headers, request.encode(), MAX_RESPONSE, connection)
        try:
            response, text = jsontext.decode(body)
        except ValueError:
            raise unusable() from None
        if not isinstance(response, dict) or ("result" in response) == ("error" in response):
            raise unusable()
        own_id = type(response.get("id")) is int and response["id"] == number
        if "error" in response and (own_id or response.get("id") is None):
            raise _failed(method, response["error"])
        if "result" in response and own_id and 200 <= status < 300:
            return jsontext.members(text)["result"]
        raise unusable()

    def _exchange(
        self,
        verb: str,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        limit: int,
        caller: socket.socket | None = None,
    ) -> tuple[int, bytes]:
        connection = None
        try:
            connection = self._connection(time.monotonic() + self.timeout, caller)
            connection.request(verb, self.base + path, body, headers | {"Accept": "application/json"})
            response = connection.getresponse()
            data = response.read(limit + 1)
            if len(data) > limit or response.length:  # too long, or cut short
                raise unusable()
            if connection.sock is not None and response.isclosed():
                with self.lock:
                    self.idle.append(connection)
                connection = None
        except TimeoutError:
            raise Failure(504, "upstream_timeout", "The site did not respond in time.") from None
        except ConnectionRefusedError:
            raise Failure(503, "upstream_unavailable", "The site cannot be reached.") from None
        except (OSError, http.client.HTTPException):
            raise unusable() from None
        finally:
            if connection:
                connection.close()
        if response.status == 401:
            challenges = response.headers.get_all("WWW-Authenticate") or ['Basic realm="Drupal"']
            headers_out = tuple(("WWW-Authenticate", challenge) for challenge in challenges)
            raise Failure(401, "authentication_required", "The site requires other credentials.", headers=headers_out)
        if response.status == 403:
            raise Failure(403, "access_denied", "The site denies this caller access.")
        return response.status, data

    def _connection(self, deadline: float, caller: socket.socket | None) -> http.client.HTTPConnection:
        connection = None
        while connection is None:
            with self.lock:
                if not self.idle:
                    break
                connection = self.idle.pop()
            if connection.sock.unusable():
                connection.close()
                connection = None
        if connection is None:
            kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
            connection = kind(self.host, self.port, timeout=self.timeout)
            connection.connect()
            connection.sock = SiteSocket(connection.sock)
        connection.sock.deadline, connection.sock.caller = deadline, caller
        return connection


def unusable() -> Failure:
    """The site's response is none to this request."""
    return Failure(502, "upstream_error", "The site gave no usable response.")


def _failed(method: str, error: Any) -> Failure:
    if not isinstance(error, dict) or type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        return unusable()
    code, message, detail = error["code"], error["message"] or "no message", error.get("data")
    if code == -32600 and str(detail).startswith("Access Denied"):
        return Failure(403, "access_denied", f"Access denied: the site does not let this caller run {method}.")
    if code == -32601:
        return Failure(404, "tool_not_found", f"There is no tool named {json.dumps(method, ensure_ascii=False)}.")
    data = {"jsonrpc_code": code}
    if detail is not None and code != -32603 and "parameter schema" not in str(detail):  # else PHP's own text
        data["jsonrpc_data"] = detail
        if isinstance(detail, str):
            message = f"{message}: {detail}"
    if code == -32602:
        return Failure(400, "invalid_params", f"The site refused the arguments of {method}: {message}", data)
    return Failure(500, "execution_error", message, data)
