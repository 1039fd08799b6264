<?php

declare(strict_types=1);

// A web server for the bridge: a process for each connection. The server of `php -S` is no choice, since a process of it
// accepts a request while another one waits for the site. Behind a web server of your own, index.php is all you need.

require __DIR__ . '/respond.php';

const BODY_LIMIT = 2 << 20;
const PATIENCE = 10; // seconds for a client to send a request
const IDLE = 5;      // seconds for it to begin the next one: a kept connection occupies a process

$listener = stream_socket_server('tcp://' . getenv('BRIDGE_LISTEN'), context: stream_context_create(['socket' => ['backlog' => 512]]));
for ($i = 0; $i < (int) (getenv('BRIDGE_WORKERS') ?: 256); ++$i) {
    if (pcntl_fork() === 0) {
        while (true) {
            $client = @stream_socket_accept($listener, -1);
            for ($begin = PATIENCE; $client !== false && converse($client, $begin); $begin = IDLE) {
            }
        }
    }
}
pcntl_wait($status); // a child that ends is a bug
exit(1);

/**
 * Reads one request and responds.
 *
 * @param resource $client
 * @param int      $begin  seconds for the request to begin
 *
 * @return bool whether the client may send another one
 */
function converse($client, int $begin): bool
{
    $deadline = microtime(true) + PATIENCE;
    $received = '';
    receive($client, $received, microtime(true) + $begin);
    while (($end = strpos($received, "\r\n\r\n")) === false) {
        if ($received === '' || strlen($received) > 32 << 10 || !receive($client, $received, $deadline)) {
            fclose($client);

            return false;
        }
    }
    $lines = explode("\r\n", substr($received, 0, $end));
    $rest = substr($received, $end + 4);
    $headers = [];
    foreach (array_slice($lines, 1) as $line) {
        [$name, $value] = explode(':', $line, 2) + [1 => ''];
        $headers[strtolower($name)] = trim($value);
    }
    [$method, $target] = explode(' ', $lines[0]) + [1 => '/'];
    if (strcasecmp($headers['expect'] ?? '', '100-continue') === 0) {
        fwrite($client, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    $body = isset($headers['transfer-encoding']) ? chunks($client, $rest, $deadline) : rest($client, $rest, (int) ($headers['content-length'] ?? 0), $deadline);
    if ($body === null) {
        $headers['connection'] = 'close';
    }
    [$status, $fields, $text] = respond(new Request($method, $target, $headers, $body));
    $keep = strcasecmp($headers['connection'] ?? '', 'close') !== 0 && str_ends_with($lines[0], '/1.1');
    $fields += ['Connection' => $keep ? 'keep-alive' : 'close', 'Date' => gmdate('D, d M Y H:i:s \G\M\T')];
    $head = "HTTP/1.1 $status \r\n";
    foreach ($fields as $name => $value) {
        $head .= "$name: $value\r\n";
    }
    @fwrite($client, "$head\r\n$text");
    if (!$keep) {
        stream_socket_shutdown($client, STREAM_SHUT_WR);
        // What the client still sends is dropped: a connection that is closed before loses the response.
        for ($dropped = ''; receive($client, $dropped, $deadline); $dropped = '') {
        }
        fclose($client);
    }

    return $keep;
}

/** The body of a known length. */
function rest($client, string $received, int $length, float $deadline): ?string
{
    if ($length > BODY_LIMIT) {
        return null;
    }
    while (strlen($received) < $length && receive($client, $received, $deadline)) {
    }

    return strlen($received) === $length ? $received : null;
}

/** The body in chunks. */
function chunks($client, string $received, float $deadline): ?string
{
    for ($body = ''; strlen($body) <= BODY_LIMIT;) {
        while (!preg_match('/^([0-9a-f]{1,7})[^\r\n]*\r\n/i', $received, $found)) {
            if (strlen($received) > 1024 || !receive($client, $received, $deadline)) {
                return null;
            }
        }
        $size = hexdec($found[1]);
        $start = strlen($found[0]);
        if ($size > BODY_LIMIT) {
            return null;
        }
        while (strlen($received) < $start + $size + 2) {
            if (!receive($client, $received, $deadline)) {
                return null;
            }
        }
        $body .= substr($received, $start, $size);
        $received = substr($received, $start + $size + 2);
        if ($size === 0) {
            return $body;
        }
    }

    return null;
}

/** Appends what has arrived; false when the client has ended, or is too slow. */
function receive($client, string &$received, float $deadline): bool
{
    $left = $deadline - microtime(true);
    if ($left <= 0) {
        return false;
    }
    stream_set_timeout($client, (int) $left, 1000);
    $part = @fread($client, 65536);
    $received .= $part;

    return $part !== false && $part !== '';
}
