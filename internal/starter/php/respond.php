<?php

declare(strict_types=1);

foreach (['Request', 'Failure', 'Json', 'Schema', 'Site', 'Tools', 'Bridge'] as $class) {
    require_once __DIR__ . "/$class.php";
}

// A notice is a bug, and never part of a response.
set_error_handler(static fn (int $level, string $text, string $file, int $line) => error_reporting() & $level
    ? throw new ErrorException($text, 0, $level, $file, $line) : true);

/** @return array{int, array<string, string|int>, string} status, headers and body of the response */
function respond(Request $request): array
{
    $site = new Site(
        getenv('DRUPAL_URL') ?: 'http://127.0.0.1:8080',
        // These headers of the caller's request, no other, reach the site (access/credentials-forwarded).
        array_intersect_key($request->headers, ['authorization' => 1, 'cookie' => 1, 'accept-language' => 1]),
        (float) (getenv('BRIDGE_UPSTREAM_TIMEOUT') ?: 10),
    );
    try {
        [$status, $body, $extra] = [200, (new Bridge($site, (int) (getenv('BRIDGE_PAGE_SIZE') ?: 50)))->handle($request), []];
    } catch (Failure $failure) {
        [$status, $body, $extra] = [$failure->status, $failure->body(), $failure->headers];
    } catch (Throwable $bug) {
        error_log((string) $bug);
        [$status, $body, $extra] = [500, (new Failure(500, 'internal_error', 'The bridge failed'))->body(), []];
    }
    $headers = [
        'Content-Type' => 'application/json',
        'Cache-Control' => 'private, no-store',
        'X-Content-Type-Options' => 'nosniff',
        'Vary' => 'Accept-Encoding',
    ] + $extra;
    if (strlen($body) > 1024 && preg_match('/(?:^|,)\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)/i', $request->header('accept-encoding'))) {
        $headers['Content-Encoding'] = 'gzip';
        $body = gzencode($body);
    }
    $headers['Content-Length'] = strlen($body);

    return [$status, $headers, $request->method === 'HEAD' ? '' : $body];
}
