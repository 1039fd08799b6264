<?php

declare(strict_types=1);

/** A request as it arrived. */
final class Request
{
    /**
     * @param string                $target  path and query
     * @param array<string, string> $headers by name in lower case
     * @param ?string               $body    null if it is too large
     */
    public function __construct(
        public readonly string $method,
        public readonly string $target,
        public readonly array $headers,
        public readonly ?string $body,
    ) {
    }

    /** @return array<mixed> the parameters of the query */
    public function query(): array
    {
        parse_str(explode('?', $this->target, 2)[1] ?? '', $query);

        return $query;
    }

    public function path(): string
    {
        return preg_replace('#^https?://[^/]*#i', '', explode('?', $this->target, 2)[0]);
    }

    public function header(string $name): string
    {
        return $this->headers[$name] ?? '';
    }
}
