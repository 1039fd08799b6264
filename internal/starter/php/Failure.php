<?php

declare(strict_types=1);

/** A refusal: what the caller receives in place of a result. */
final class Failure extends RuntimeException
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly int $status,
        private readonly string $word,
        string $message,
        private readonly mixed $data = null,
        public readonly array $headers = [],
    ) {
        parent::__construct($message);
    }

    /** For every name that the caller does not see, so that nobody learns why (access/no-oracle). */
    public static function toolNotFound(string $name): self
    {
        return new self(404, 'tool_not_found', "No tool named $name");
    }

    public static function upstream(string $message): self
    {
        return new self(502, 'upstream_error', $message);
    }

    public function body(): string
    {
        $error = ['code' => $this->word, 'message' => $this->getMessage()];
        if ($this->data !== null) {
            $error['data'] = $this->data;
        }

        return Json::encode(['error' => $error]);
    }
}
