"""The bridge in front of a small site of its own. `bridgecheck run --config bridgecheck.yaml` tests it against the whole
contract."""

import http.client
import json
import os
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BIG = 9007199254740993  # beyond what a double holds
METHODS = {
    "data": [
        {"id": "content.get", "attributes": {
            "usage": "Loads content", "mcpTool": {"title": "Get"},
            "params": {"nid": {"schema": {"type": "integer"}, "attributes": {"required": True}}},
        }},
        {"id": "cache.rebuild", "attributes": {"usage": "No tool"}},
        {"id": "by.position", "attributes": {"usage": "No names", "mcpTool": {"title": "P"}, "params": [{"schema": {}}]}},
        {"id": "content.tree", "attributes": {"usage": "References", "mcpTool": [], "params": {
            "tag": {"schema": {"$ref": "#/definitions/tag", "definitions": {"tag": {"type": "object", "properties": []}}}},
        }}},
    ],
    "meta": {"mcp": {"discovery": True}},
}


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    seen = []
    reply = None  # gives status and body for a call

    def respond(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Site.seen.append((self.path, self.headers["Authorization"], body.decode()))
        status, data = 200, json.dumps(METHODS).encode()
        if self.headers["Authorization"] != "Basic me":
            status, data = 401, b"<html>"
        elif self.path == "/jsonrpc":
            status, data = Site.reply(json.loads(body))
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="site"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = respond

    def log_message(self, *_):
        pass


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address


SITE = serve(ThreadingHTTPServer(("127.0.0.1", 0), Site))
os.environ.update(DRUPAL_URL=f"http://127.0.0.1:{SITE[1]}", BRIDGE_PAGE_SIZE="1")

import bridge  # noqa: E402 - it reads the environment

BRIDGE = serve(bridge.Server(("127.0.0.1", 0), bridge.Caller))


class BridgeTest(unittest.TestCase):
    def setUp(self):
        Site.seen = []
        Site.reply = lambda call: (200, b'{"jsonrpc": "2.0", "id": %d, "result": {"big": %d, "ratio": 1.0}}' % (call["id"], BIG))
        self.connection = http.client.HTTPConnection(*BRIDGE, timeout=10)
        self.addCleanup(self.connection.close)

    def ask(self, path, body=None, authorization="Basic me"):
        headers = {"Content-Type": "application/json", **({"Authorization": authorization} if authorization else {})}
        self.connection.request("POST" if body is not None else "GET", path, body, headers)
        response = self.connection.getresponse()
        return response, response.read().decode()

    def assert_error(self, want, got):
        response, text = got
        self.assertEqual(want, f"{response.status} {json.loads(text)['error']['code']}", text)

    def invoke(self, body):
        return self.ask("/mcp/tools/invoke", body)

    def test_list_has_the_tools_page_by_page(self):
        first = json.loads(self.ask("/mcp/tools/list")[1])
        self.assertEqual(first["tools"], [{
            "name": "content.get", "description": "Loads content", "title": "Get",
            "inputSchema": {"type": "object", "properties": {"nid": {"type": "integer"}}, "required": ["nid"]},
        }])
        second = json.loads(self.ask("/mcp/tools/list?cursor=" + first["nextCursor"])[1])
        self.assertEqual(second, {"tools": [{
            "name": "content.tree", "description": "References",
            "inputSchema": {"type": "object", "properties": {"tag": {"type": "object", "properties": {}}}},
        }]})
        self.assert_error("400 invalid_cursor", self.ask("/mcp/tools/list?cursor=LTE%3D"))

    def test_describe_has_the_tool_of_the_list_and_no_other_method(self):
        self.assertEqual(json.loads(self.ask("/mcp/tools/describe?name=content.get")[1])["tool"]["name"], "content.get")
        for name in ("cache.rebuild", "by.position", "Content.Get"):
            self.assert_error("404 tool_not_found", self.ask("/mcp/tools/describe?name=" + name))
        self.assert_error("400 missing_parameter", self.ask("/mcp/tools/describe"))

    def test_invoke_forwards_arguments_and_result_without_loss_once_as_the_caller(self):
        _, text = self.invoke('{"name": "content.get", "arguments": {"nid": %d, "filter": {}}}' % BIG)
        self.assertEqual(text, '{"result":{"big":%d,"ratio":1.0}}' % BIG)
        calls = [(authorization, json.loads(body)["params"]) for path, authorization, body in Site.seen if path == "/jsonrpc"]
        self.assertEqual(calls, [("Basic me", {"nid": BIG, "filter": {}})])

    def test_invoke_runs_nothing_that_is_malformed_or_hidden(self):
        for body, want in (
            ('{"name": "content.get"', "400 invalid_json"),
            ('{"name": "content.get", "name": "x", "arguments": {}}', "400 invalid_json"),
            ('{"name": "content.get", "arguments": {"n": NaN}}', "400 invalid_json"),
            ('{"name": "content.get", "arguments": %s%s}' % ("[" * 10_000, "]" * 10_000), "400 invalid_json"),
            ("null", "400 missing_parameter"),
            ('{"name": ["content.get"], "arguments": {}}', "400 missing_parameter"),
            ('{"name": "content.get", "arguments": []}', "400 missing_parameter"),
            ('{"name": "cache.rebuild", "arguments": {}}', "404 tool_not_found"),
            ('{"name": "content.get", "arguments": {"x": "%s"}}' % ("x" * (3 << 20)), "413 request_too_large"),
        ):
            with self.subTest(body[:80]):
                self.assert_error(want, self.invoke(body))
        self.assertEqual([path for path, _, _ in Site.seen if path == "/jsonrpc"], [])

    def test_errors_of_the_site_get_their_status_and_code(self):
        def error(code, data):
            return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "No", "data": data}}).encode()

        for status, body, want in (
            (200, error(-32600, "Access Denied: no"), "403 access_denied"),
            (400, error(-32601, "x"), "404 tool_not_found"),
            (400, error(-32602, "There is no such article"), "400 invalid_params"),
            (500, error(-32603, "/var/www/secret.php"), "500 execution_error"),
            (200, b'{"jsonrpc": "2.0", "id": 0, "result": 1}', "502 upstream_error"),
            (503, b"<html>", "503 upstream_unavailable"),
            (200, b"", "502 upstream_error"),
        ):
            with self.subTest(body):
                Site.reply = lambda _, status=status, body=body: (status, body)
                got = self.invoke('{"name": "content.get", "arguments": {"nid": 1}}')
                self.assert_error(want, got)
                self.assertNotIn("secret", got[1])
        refusal = error(-32602, "The nid parameter does not conform to the parameter schema. Adaptor Drupal\\x")
        Site.reply = lambda _: (400, refusal)
        _, text = self.invoke('{"name": "content.get", "arguments": {"nid": "one"}}')
        named = {"parameter": "nid", "expected": {"type": "integer"}, "received": "one"}
        self.assertEqual(json.loads(text)["error"]["data"], named)

    def test_a_caller_without_credentials_gets_the_challenge_of_the_site(self):
        got = self.ask("/mcp/tools/list", authorization=None)
        self.assert_error("401 authentication_required", got)
        self.assertEqual(got[0].headers["WWW-Authenticate"], 'Basic realm="site"')

    def test_paths_and_verbs_that_do_not_exist_are_refused_as_json(self):
        self.assert_error("404 not_found", self.ask("/mcp/nothing"))
        got = self.ask("/mcp/tools/invoke")
        self.assert_error("405 method_not_allowed", got)
        self.assertEqual(got[0].headers["Allow"], "POST")


if __name__ == "__main__":
    unittest.main()
