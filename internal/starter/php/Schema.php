<?php

declare(strict_types=1);

/** Makes a schema that the site publishes fit for a client, or refuses it with an UnexpectedValueException. */
final class Schema
{
    private const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];
    private const SCHEMAS = ['additionalItems', 'additionalProperties', 'contains', 'else', 'if', 'not', 'propertyNames', 'then', 'unevaluatedItems', 'unevaluatedProperties'];
    private const MAPS = ['dependentSchemas', 'patternProperties', 'properties'];
    private const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
    private const COUNTS = ['maxContains', 'maxItems', 'maxLength', 'maxProperties', 'minContains', 'minItems', 'minLength', 'minProperties'];
    private const NUMBERS = ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf'];
    private const TEXTS = ['$comment', 'description', 'format', 'title'];

    private int $parts = 0;

    private function __construct(private readonly mixed $root)
    {
    }

    /** @return stdClass the schema with every reference replaced by its target, and {} where PHP wrote [] */
    public static function repair(mixed $schema): stdClass
    {
        $repaired = (new self($schema))->part($schema, 0);
        if (!$repaired instanceof stdClass) {
            throw new UnexpectedValueException('is true or false');
        }
        if (strlen(Json::encode($repaired)) > 60_000) {
            throw new UnexpectedValueException('is too large');
        }

        return $repaired;
    }

    private function part(mixed $schema, int $depth): stdClass|bool
    {
        if ($depth > 28 || ++$this->parts > 5000) {
            throw new UnexpectedValueException('is too deep or too large, or refers to itself');
        }
        if (is_bool($schema)) {
            return $schema;
        }
        $schema = $this->map($schema);
        if (isset($schema->{'$ref'})) {
            return $this->part($this->target($schema->{'$ref'}), $depth + 1);
        }
        $copy = new stdClass();
        foreach (get_object_vars($schema) as $keyword => $value) {
            $keyword = (string) $keyword;
            if ($keyword !== '$defs' && $keyword !== 'definitions') { // what refers to them holds a copy
                $copy->{$keyword} = $this->keyword($keyword, $value, $depth);
            }
        }
        foreach (['imum', 'Items', 'Length', 'Properties'] as $bound) {
            $this->check(($copy->{"min$bound"} ?? -INF) <= ($copy->{"max$bound"} ?? INF), "min$bound");
        }
        if (($copy->additionalProperties ?? true) === false && !isset($copy->patternProperties)) {
            foreach ($copy->required ?? [] as $name) {
                $this->check(isset($copy->properties->{$name}), 'required');
            }
        }
        if (($copy->type ?? null) === 'array') {
            $copy->items ??= new stdClass(); // profile/array-items
        }

        return $copy;
    }

    private function keyword(string $keyword, mixed $value, int $depth): mixed
    {
        $schema = fn (mixed $part): stdClass|bool => $this->part($part, $depth + 1);
        if (in_array($keyword, self::SCHEMAS, true) || ($keyword === 'items' && (!is_array($value) || $value === []))) {
            return $schema($value);
        }
        if (in_array($keyword, self::MAPS, true)) {
            return (object) array_map($schema, get_object_vars($this->map($value)));
        }
        if ($keyword === 'dependencies') { // a member needs others, or makes a schema hold
            $names = static fn (mixed $part): bool => is_array($part) && $part !== [];

            return (object) array_map(static fn (mixed $part) => $names($part) ? $part : $schema($part), get_object_vars($this->map($value)));
        }
        if (in_array($keyword, self::LISTS, true) || $keyword === 'items') {
            $this->check(is_array($value) && $value !== [], $keyword);

            return array_map($schema, $value);
        }
        $this->check(match (true) {
            $keyword === 'type' => $value !== [] && array_diff((array) $value, self::TYPES) === [],
            $keyword === 'enum' => is_array($value) && $value !== [],
            $keyword === 'required' => is_array($value) && array_filter($value, is_string(...)) === $value && array_unique($value) === $value,
            $keyword === 'uniqueItems' => is_bool($value),
            $keyword === 'pattern' => is_string($value) && self::compiles($value),
            in_array($keyword, self::COUNTS, true) => is_int($value) && $value >= 0,
            in_array($keyword, self::NUMBERS, true) => is_int($value) || is_float($value),
            in_array($keyword, self::TEXTS, true) => is_string($value),
            in_array($keyword, ['$id', '$anchor', '$dynamicRef', '$recursiveRef'], true) => false,
            default => true,
        }, $keyword);

        return $value;
    }

    /** An object as it is; PHP writes an empty one as [] (mapping/no-params-object). */
    private function map(mixed $value): stdClass
    {
        $this->check($value === [] || $value instanceof stdClass, 'object');

        return (object) $value;
    }

    /** What a reference within the schema refers to; another one is refused (schema/no-remote-ref). */
    private function target(mixed $reference): mixed
    {
        $this->check(is_string($reference) && str_starts_with($reference, '#'), '$ref');
        $target = $this->root;
        foreach (array_slice(explode('/', rawurldecode($reference)), 1) as $step) {
            $step = strtr($step, ['~1' => '/', '~0' => '~']);
            $target = is_array($target) ? $target[$step] ?? null : $target->{$step} ?? null;
        }
        $this->check($target !== null, '$ref');

        return $target;
    }

    private static function compiles(string $pattern): bool
    {
        try {
            return preg_match('~' . str_replace('~', '\~', $pattern) . '~u', '') !== false;
        } catch (ErrorException) {
            return false;
        }
    }

    private function check(bool $valid, string $what): void
    {
        if (!$valid) {
            throw new UnexpectedValueException("has a wrong $what");
        }
    }
}
