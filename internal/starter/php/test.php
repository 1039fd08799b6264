<?php

declare(strict_types=1);

// The bridge in front of a small site of its own: php test.php. `bridgecheck run --config bridgecheck.yaml` tests it against
// the whole contract.

require __DIR__ . '/respond.php';

const BIG = '9007199254740993'; // no float holds it
const METHODS = '{"data": [
    {"id": "content.get", "attributes": {"usage": "Loads content", "mcpTool": {"title": "Get"},
        "params": {"nid": {"schema": {"type": "integer"}, "attributes": {"required": true}}}}},
    {"id": "cache.rebuild", "attributes": {"usage": "No tool"}},
    {"id": "by.position", "attributes": {"usage": "No names", "mcpTool": {"title": "P"}, "params": [{"schema": []}]}},
    {"id": "content.tree", "attributes": {"usage": "References", "mcpTool": [], "params": {
        "tag": {"schema": {"$ref": "#/definitions/tag", "definitions": {"tag": {"type": "object", "properties": []}}}}}}}
], "meta": {"mcp": {"discovery": true}}}';

if (PHP_SAPI === 'cli-server') { // this file is also the site; what it sends for a call is in the file next, in calls what it received
    $body = file_get_contents('php://input');
    if (($_SERVER['HTTP_AUTHORIZATION'] ?? '') !== 'Basic me') {
        header('WWW-Authenticate: Basic realm="site"', response_code: 401);
    } elseif ($_SERVER['REQUEST_URI'] === '/jsonrpc/methods') {
        echo METHODS;
    } else {
        file_put_contents(getenv('SITE') . '/calls', "$body\n", FILE_APPEND);
        [$status, $text] = explode(' ', file_get_contents(getenv('SITE') . '/next'), 2);
        http_response_code((int) $status);
        echo str_replace('ID', (string) json_decode($body)->id, $text);
    }

    return;
}

$directory = sys_get_temp_dir() . '/bridge-' . bin2hex(random_bytes(8));
mkdir($directory, 0700);
$free = stream_socket_server('tcp://127.0.0.1:0');
$address = stream_socket_get_name($free, false);
fclose($free);
$site = proc_open([PHP_BINARY, '-S', $address, __FILE__], [2 => ['file', "$directory/log", 'w']], $pipes, env_vars: ['SITE' => $directory]);
register_shutdown_function(static function () use ($site, $directory): void {
    proc_terminate($site);
    array_map(unlink(...), glob("$directory/*"));
    rmdir($directory);
});
for ($i = 0; $i < 100 && !($up = @stream_socket_client("tcp://$address")); ++$i) {
    usleep(50_000);
}
putenv("DRUPAL_URL=http://$address");
putenv('BRIDGE_PAGE_SIZE=1');
ini_set('error_log', "$directory/log");
$failures = 0;

/** Sends a request to the bridge; gives the status with the code of the error, or with the body. */
function send(string $target, ?string $body = null, array $headers = ['authorization' => 'Basic me']): string
{
    $verb = $body === null ? 'GET' : 'POST';
    [$status, , $text] = respond(new Request($verb, $target, $headers + ['content-type' => 'application/json'], $body ?? ''));

    return $status . ' ' . (json_decode($text)->error->code ?? $text) . (str_contains($text, 'secret') ? ' with a secret' : '');
}

/** Invokes content.get; $next is what the site sends for the call. */
function invoke(string $next, string $arguments = '{"nid": 1}'): string
{
    file_put_contents($GLOBALS['directory'] . '/next', $next);

    return send('/mcp/tools/invoke', '{"name": "content.get", "arguments": ' . $arguments . '}');
}

function expect(string $what, string $want, string $got): void
{
    if ($want !== $got) {
        ++$GLOBALS['failures'];
        echo "FAILED $what\n  want $want\n  got  $got\n";
    }
}

$get = '{"name":"content.get","title":"Get","description":"Loads content",'
    . '"inputSchema":{"type":"object","properties":{"nid":{"type":"integer"}},"required":["nid"]}}';
$first = send('/mcp/tools/list');
$cursor = json_decode(substr($first, 4))->nextCursor ?? '';
expect('the first page', "200 {\"tools\":[$get],\"nextCursor\":\"$cursor\"}", $first);
expect('the last page', '200 {"tools":[{"name":"content.tree","description":"References","inputSchema":{"type":"object",'
    . '"properties":{"tag":{"type":"object","properties":{}}}}}]}', send('/mcp/tools/list?cursor=' . rawurlencode($cursor)));
expect('describe', "200 {\"tool\":$get}", send('/mcp/tools/describe?name=content.get'));
foreach ([
    'list?cursor=LTE%3D' => '400 invalid_cursor',
    'describe' => '400 missing_parameter',
    'describe?name[]=x' => '400 missing_parameter',
    'describe?name=Content.Get' => '404 tool_not_found',
    'describe?name=cache.rebuild' => '404 tool_not_found',
    'describe?name=by.position' => '404 tool_not_found',
    'nothing' => '404 not_found',
    'invoke' => '405 method_not_allowed',
] as $target => $want) {
    expect($target, $want, send("/mcp/tools/$target"));
}
expect('no credentials', '401 authentication_required', send('/mcp/tools/list', headers: []));

foreach ([
    '{"name": "content.get"' => '400 invalid_json',
    '{"name": "content.get", "name": "x", "arguments": {}}' => '400 invalid_json',
    '{"name": "content.get", "arguments": ' . str_repeat('[', 10_000) . str_repeat(']', 10_000) . '}' => '400 invalid_json',
    'null' => '400 invalid_json',
    '{"name": ["content.get"], "arguments": {}}' => '400 missing_parameter',
    '{"name": "content.get", "arguments": []}' => '400 invalid_params',
    '{"name": "cache.rebuild", "arguments": {}}' => '404 tool_not_found',
] as $body => $want) {
    expect(substr($body, 0, 80), $want, send('/mcp/tools/invoke', $body));
}
expect('what is malformed or hidden runs nothing', '', (string) @file_get_contents("$directory/calls"));

$result = '{"big": ' . BIG . ', "ratio": 1.0, "none": {}}';
expect('invoke', "200 {\"result\":$result}", invoke("200 {\"jsonrpc\": \"2.0\", \"id\": ID, \"result\": $result}", '{"nid": ' . BIG . ', "filter": {}}'));
expect('the call of the site', '"params":{"nid": ' . BIG . ', "filter": {}}', substr((string) strstr(trim(file_get_contents("$directory/calls")), '"params"'), 0, -1));

$error = static fn (int $code, string $data): string => '{"jsonrpc": "2.0", "id": null, "error": {"code": ' . $code . ', "message": "No", "data": "' . $data . '"}}';
foreach ([
    '200 ' . $error(-32600, 'The id is missing') => '500 execution_error',
    '200 ' . $error(-32600, 'Access Denied: no') => '403 access_denied',
    '400 ' . $error(-32601, 'x') => '404 tool_not_found',
    '400 ' . $error(-32602, 'There is no such article') => '400 invalid_params',
    '400 ' . $error(-32602, 'Missing required parameter: nid') => '400 invalid_params',
    '500 ' . $error(-32603, '/var/www/secret.php') => '500 execution_error',
    '200 {"jsonrpc": "2.0", "id": 0, "result": 1}' => '502 upstream_error',
    '503 <html>' => '502 upstream_error',
    '200 ' => '502 upstream_error',
] as $next => $want) {
    expect($next, $want, invoke($next));
}

echo $failures === 0 ? "all passed\n" : "$failures failed\n";
exit(min(1, $failures));
