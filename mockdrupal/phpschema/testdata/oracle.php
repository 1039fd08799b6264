<?php

/**
 * Validates pairs of schema and value with the library below the directory in JSON_SCHEMA (its source, not an installation).
 *
 * It reads lines {"schema":…,"value":…} and writes a line for each: the errors as the library has them, or the exception.
 */

declare(strict_types=1);

namespace MabeEnum {
  /** What the library needs of marc-mabe/php-enum. */
  abstract class Enum {
    private static array $all = [];
    private mixed $value;

    public static function byValue(mixed $value): static {
      if (!isset(self::$all[static::class][serialize($value)])) {
        $enum = (new \ReflectionClass(static::class))->newInstanceWithoutConstructor();
        $enum->value = $value;
        self::$all[static::class][serialize($value)] = $enum;
      }
      return self::$all[static::class][serialize($value)];
    }

    public static function __callStatic(string $name, array $arguments): static {
      return static::byValue(constant(static::class . '::' . $name));
    }

    public function getValue(): mixed {
      return $this->value;
    }
  }
}

namespace {
  error_reporting(0);
  spl_autoload_register(static function (string $class): void {
    $file = getenv('JSON_SCHEMA') . '/src/' . str_replace('\\', '/', $class) . '.php';
    if (is_file($file)) {
      require $file;
    }
  });
  while (($line = fgets(STDIN)) !== FALSE) {
    ['schema' => $schema, 'value' => $value] = json_decode($line, TRUE);
    try {
      $validator = new JsonSchema\Validator();
      $validator->validate($value, $schema, JsonSchema\Constraints\Constraint::CHECK_MODE_TYPE_CAST);
      $out = ['errors' => array_values($validator->getErrors())];
    }
    catch (Throwable $e) {
      $out = ['class' => $e instanceof Exception ? '' : get_class($e), 'message' => $e->getMessage()];
    }
    echo json_encode($out, JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
  }
}
