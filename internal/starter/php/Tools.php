<?php

declare(strict_types=1);

/** The tools of one caller: the methods that the site shows this caller and that have the McpTool attribute. */
final class Tools
{
    /** @var array<array-key, stdClass> by name, in the site's order */
    private array $methods = [];

    /** Whether the caller has the permission `access mcp tool discovery`. */
    public readonly bool $discoverable;

    /** @param stdClass $document the response to GET /jsonrpc/methods */
    public function __construct(stdClass $document)
    {
        $this->discoverable = ($document->meta->mcp->discovery ?? false) === true;
        foreach ($document->data as $method) {
            if (isset($method->attributes->mcpTool) && is_string($method->id ?? null) && $method->id !== '') {
                $this->methods[$method->id] ??= $method;
            }
        }
    }

    public function find(string $name): ?stdClass
    {
        return isset($this->methods[$name]) ? self::translate($this->methods[$name]) : null;
    }

    /** @return list<stdClass> */
    public function all(): array
    {
        return array_values(array_filter(array_map(self::translate(...), $this->methods)));
    }

    /** @return ?stdClass null where a parameter has a schema that no client can use; the log says which (translate/one-bad-tool) */
    private static function translate(stdClass $method): ?stdClass
    {
        $attributes = $method->attributes;
        $mark = (object) $attributes->mcpTool;
        $tool = new stdClass();
        $tool->name = $method->id;
        if (is_string($mark->title ?? null) && $mark->title !== '') {
            $tool->title = $mark->title;
        }
        $tool->description = is_string($attributes->usage ?? null) && $attributes->usage !== '' ? $attributes->usage : $tool->title ?? $tool->name;
        try {
            $tool->inputSchema = self::input($attributes->params ?? []);
        } catch (UnexpectedValueException $e) {
            error_log("$method->id is no tool: its {$e->getMessage()}");

            return null;
        }
        if (isset($attributes->output)) {
            try {
                $tool->outputSchema = Schema::repair($attributes->output);
            } catch (UnexpectedValueException $e) {
                error_log("$method->id is shown without its output schema, which {$e->getMessage()}");
            }
        }
        if (($mark->annotations ?? null) instanceof stdClass) {
            $tool->annotations = $mark->annotations;
        }

        return $tool;
    }

    /** @param stdClass|array<mixed> $params by name; PHP writes none as [], and those by position as a list (mapping/by-position) */
    private static function input(stdClass|array $params): stdClass
    {
        if (is_array($params) && $params !== []) {
            throw new UnexpectedValueException('parameters have no names');
        }
        $input = (object) ['type' => 'object', 'properties' => new stdClass()];
        $required = [];
        foreach ((array) $params as $name => $param) {
            $name = (string) $name;
            try {
                $schema = Schema::repair(($param->schema ?? null) === true ? new stdClass() : $param->schema ?? null);
            } catch (UnexpectedValueException $e) {
                throw new UnexpectedValueException("parameter $name {$e->getMessage()}");
            }
            if (is_string($param->attributes->description ?? null) && $param->attributes->description !== '') {
                $schema->description = $param->attributes->description;
            }
            if (isset($schema->{'$schema'})) { // a dialect holds for the whole schema
                $input->{'$schema'} = $schema->{'$schema'};
                unset($schema->{'$schema'});
            }
            $input->properties->{$name} = $schema;
            if (($param->attributes->required ?? false) === true) {
                $required[] = $name;
            }
        }
        if ($required !== []) {
            $input->required = $required;
        }

        return $input;
    }
}
