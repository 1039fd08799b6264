<?php

declare(strict_types=1);

// The front controller behind a web server: every request comes here, whatever its path and method.

require __DIR__ . '/respond.php';

$body = stream_get_contents(fopen('php://input', 'rb'), (2 << 20) + 1);
[$status, $headers, $text] = respond(new Request(
    $_SERVER['REQUEST_METHOD'],
    $_SERVER['REQUEST_URI'],
    array_change_key_case(getallheaders()),
    strlen($body) > 2 << 20 ? null : $body,
));
http_response_code($status);
foreach ($headers as $name => $value) {
    header("$name: $value");
}
echo $text;
