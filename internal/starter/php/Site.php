<?php

declare(strict_types=1);

/** The Drupal site, as one caller sees it in one request (access/credentials-forwarded). */
final class Site
{
    private const LIMIT = 16 << 20; // bytes of a response, decompressed (upstream/huge-answer)

    private readonly float $deadline;

    /** @param array<string, string> $headers what the caller sent and the site must see: credentials, language */
    public function __construct(private readonly string $url, private readonly array $headers, float $timeout)
    {
        $this->deadline = microtime(true) + $timeout * 0.9; // the rest is for the response to the caller
    }

    public function tools(): Tools
    {
        [$status, $body] = $this->request('/jsonrpc/methods');
        try {
            $document = $status === 200 ? Json::decode($body) : null;
        } catch (JsonException) {
            $document = null;
        }
        if (!is_array($document->data ?? null)) {
            throw Failure::upstream('The site did not list its methods');
        }

        return new Tools($document);
    }

    /**
     * Calls a method, once.
     *
     * @param string $arguments a JSON object
     *
     * @return string the JSON text of the result, as the site wrote it
     */
    public function call(string $method, string $arguments): string
    {
        $id = random_int(1, PHP_INT_MAX >> 11);
        $call = '{"jsonrpc":"2.0","id":' . $id . ',"method":' . Json::encode($method) . ',"params":' . $arguments . '}';
        [$status, $body] = $this->request('/jsonrpc', $call);
        try {
            $response = Json::members($body);
        } catch (JsonException) {
            throw Failure::upstream('The site sent no valid JSON-RPC response');
        }
        $matches = ($response['id'] ?? 'null') === (string) $id;
        if (isset($response['result']) === isset($response['error'])) {
            throw Failure::upstream('The site sent no result and no error, or both');
        }
        if (isset($response['error'])) {
            if (!$matches && ($response['id'] ?? 'null') !== 'null') {
                throw Failure::upstream('The site sent the error of another call');
            }
            throw $this->error($method, Json::decode($response['error']));
        }
        if (!$matches || $status < 200 || $status > 299) {
            throw Failure::upstream('The site sent the result of another call, or a result with an error status');
        }

        return $response['result'];
    }

    private function error(string $method, mixed $error): Failure
    {
        $code = $error->code ?? null;
        $message = is_string($error->message ?? null) && $error->message !== '' ? $error->message : 'The method failed';
        $data = $error->data ?? null;
        $violation = $code === -32602 && is_string($data) ? self::violation($data) : null;
        $kept = ['jsonrpc_code' => $code];
        if ($violation !== null) { // Drupal's own text (invoke/invalid-arguments-named)
            $message = $violation['parameter'] . ': ' . $violation['expected'];
            $kept += $violation;
        } elseif (property_exists((object) $error, 'data') && $code !== -32603) { // there it is PHP's text (invoke/no-trace-leak)
            $kept['jsonrpc_data'] = $data;
        }

        if ($code === -32600 && is_string($data) && str_starts_with($data, 'Access Denied')) {
            return new Failure(403, 'access_denied', "You may not run $method");
        }

        return match ($code) {
            -32601 => Failure::toolNotFound($method),
            -32602 => new Failure(400, 'invalid_params', $message, $kept),
            default => new Failure(500, 'execution_error', $message, $kept),
        };
    }

    /** @return ?array<string, string> what Drupal's text says of the first parameter that breaks its schema */
    private static function violation(string $text): ?array
    {
        if (preg_match('/^Missing required parameter: (.+)$/s', $text, $found)) {
            return ['parameter' => $found[1], 'expected' => 'a value: it is required', 'received' => 'nothing'];
        }
        if (!preg_match('/^The (.+?) parameter does not conform to the parameter schema\.(?:.*?(\[.*\])\.$)?/s', $text, $found)) {
            return null;
        }
        $first = json_decode($found[2] ?? '')[0] ?? null;

        return [
            'parameter' => $found[1] . ($first->pointer ?? ''),
            'expected' => $first->message ?? 'a value that its schema allows',
            'received' => (string) ($first->constraint->params->found ?? 'another value'),
        ];
    }

    /** @return array{int, string} status and body; 401 and 403 are thrown */
    private function request(string $path, ?string $call = null): array
    {
        $body = '';
        $challenge = 'Basic realm="Drupal"';
        $headers = ['Accept: application/json', 'Content-Type: application/json', 'Expect:'];
        foreach ($this->headers as $name => $value) {
            $headers[] = "$name: $value";
        }
        $left = max(1, (int) (1000 * ($this->deadline - microtime(true))));
        $curl = curl_init($this->url . $path);
        curl_setopt_array($curl, [
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_TIMEOUT_MS => $left,
            CURLOPT_CONNECTTIMEOUT_MS => $left,
            CURLOPT_NOSIGNAL => true,
            CURLOPT_ENCODING => '',
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_FOLLOWLOCATION => false,
            // curl sends a call again when a connection that it kept was closed; a new one it never tries twice.
            CURLOPT_FRESH_CONNECT => true,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use (&$challenge): int {
                if (stripos($line, 'WWW-Authenticate:') === 0) {
                    $challenge = trim(substr($line, 17));
                }

                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($curl, string $part) use (&$body): int {
                $body .= $part;

                return strlen($body) > self::LIMIT ? 0 : strlen($part);
            },
        ]);
        if ($call !== null) {
            curl_setopt($curl, CURLOPT_POSTFIELDS, $call);
        }
        curl_exec($curl);
        if (curl_errno($curl) === CURLE_OPERATION_TIMEDOUT) {
            throw new Failure(504, 'upstream_timeout', 'The site did not respond in time');
        }
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($status === 401) {
            throw new Failure(401, 'authentication_required', 'The site refused these credentials', headers: ['WWW-Authenticate' => $challenge]);
        }
        if ($status === 403) {
            throw new Failure(403, 'access_denied', 'The site denied access');
        }
        if (curl_errno($curl) !== CURLE_OK) {
            throw Failure::upstream('The site could not be reached, or its response was incomplete or too large');
        }

        return [$status, $body];
    }
}
