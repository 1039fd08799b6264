<?php

/**
 * @file
 * Stand-ins for what the module touches of Drupal core and Symfony.
 *
 * They were written for these tests, from the public documentation, and do as
 * much as the module asks of them.
 */

declare(strict_types=1);

namespace GuzzleHttp\Exception {

  /**
   * An exception whose constructor wants more than a message.
   */
  class ConnectException extends \RuntimeException {

    public function __construct(string $message, public readonly object $request) {
      parent::__construct($message);
    }

  }
}

namespace Drupal\Component\Serialization {

  final class Json {

    public static function encode(mixed $variable): string|false {
      return json_encode($variable, JSON_HEX_TAG | JSON_HEX_APOS | JSON_HEX_AMP | JSON_HEX_QUOT);
    }

  }
}

namespace Drupal\Core\Database {

  /**
   * A database: tables of rows with a number each.
   */
  final class Connection {

    public array $tables = [];
    public int $last = 0;

    public function startTransaction(): object {
      return new \stdClass();
    }

    public function schema(): object {
      return new class($this) {

        public function __construct(private readonly Connection $database) {}

        public function tableExists(string $table): bool {
          return isset($this->database->tables[$table]);
        }

      };
    }

    public function __call(string $verb, array $arguments): Query {
      return new Query($this, $verb, $arguments[0]);
    }

  }

  /**
   * A query of one of the kinds merge, insert, update, delete and select.
   */
  final class Query {

    private array $fields = [];
    private array $conditions = [];
    private array $found = [];
    private array $key = [];

    public function __construct(private readonly Connection $database, private readonly string $verb, private readonly string $table) {}

    public function key(string $field, mixed $value): static {
      $this->key = [$field => $value];
      return $this->condition($field, $value);
    }

    public function fields(mixed ...$fields): static {
      $this->fields = end($fields);
      return $this;
    }

    public function expression(string $field, string $expression): static {
      return $this;
    }

    public function condition(string $field, mixed $value, string $operator = '='): static {
      $this->conditions[] = fn (array $row): bool => match ($operator) {
        '=' => $row[$field] == $value,
        '>' => $row[$field] > $value,
        '<=' => $row[$field] <= $value,
      };
      return $this;
    }

    public function orderBy(string $field): static {
      return $this;
    }

    private function matches(array $row): bool {
      return !array_filter($this->conditions, fn (\Closure $condition): bool => !$condition($row));
    }

    public function execute(): mixed {
      $rows = &$this->database->tables[$this->table];
      $rows ??= [];
      $this->found = array_filter($rows, $this->matches(...));
      switch ($this->verb) {
        case 'merge':
          if (!$this->found) {
            $rows[] = $this->key + $this->fields;
          }
          foreach (array_keys($this->found) as $at) {
            $rows[$at]['runs']++;
          }
          break;

        case 'insert':
          $number = ++$this->database->last;
          $rows[] = ['seq' => $number, 'number' => $number] + $this->fields;
          return (string) $number;

        case 'update':
          foreach (array_keys($this->found) as $at) {
            $rows[$at] = $this->fields + $rows[$at];
          }
          break;

        case 'delete':
          $rows = array_diff_key($rows, $this->found);
          break;
      }
      return $this;
    }

    public function fetchField(): mixed {
      return $this->found ? reset($this->found)[$this->fields[0]] : FALSE;
    }

    public function fetchCol(): array {
      return array_column($this->found, $this->fields[0]);
    }

    public function fetchAllKeyed(): array {
      return array_column($this->found, $this->fields[1], $this->fields[0]);
    }

  }
}

namespace Drupal\Core\KeyValueStore {

  interface KeyValueStoreInterface {}

  interface KeyValueFactoryInterface {

    public function get(string $collection): KeyValueStoreInterface;

  }

  final class Memory implements KeyValueStoreInterface {

    public array $values = [];

    public function get($key, mixed $default = NULL): mixed {
      return $this->values[$key] ?? $default;
    }

    public function set(string $key, mixed $value): void {
      $this->values[$key] = $value;
    }

    public function delete(string $key): void {
      unset($this->values[$key]);
    }

    public function deleteAll(): void {
      $this->values = [];
    }

  }

  final class MemoryFactory implements KeyValueFactoryInterface {

    public array $collections = [];

    public function get(string $collection): KeyValueStoreInterface {
      return $this->collections[$collection] ??= new Memory();
    }

  }
}

namespace Drupal\Core\Config {

  interface ConfigFactoryInterface {}

  /**
   * The configuration: one object.
   */
  final class ConfigFactory implements ConfigFactoryInterface {

    public array $values = ['name' => 'A site'];

    public function getEditable(string $name): static {
      return $this;
    }

    public function get(string $key): mixed {
      return $this->values[$key];
    }

    public function set(string $key, mixed $value): static {
      $this->values[$key] = $value;
      return $this;
    }

    public function save(): void {}

  }
}

namespace Drupal\Component\Datetime {

  interface TimeInterface {}

  final class Time implements TimeInterface {

    public function getCurrentTime(): int {
      return time();
    }

  }
}

namespace Drupal\Component\Plugin\Discovery {

  interface CachedDiscoveryInterface {

    public function clearCachedDefinitions();

  }
}

namespace Drupal\Core\Cache {

  interface CacheTagsInvalidatorInterface {

    public function invalidateTags(array $tags);

  }

  final class Tags implements CacheTagsInvalidatorInterface {

    public function invalidateTags(array $tags): void {}

  }
}

namespace Drupal\user {

  use Drupal\Core\Entity\EntityInterface;

  interface PermissionHandlerInterface {

    public function getPermissions();

  }

  interface RoleInterface extends EntityInterface {}

  interface UserInterface extends EntityInterface {}
}

namespace Drupal\Core\Session {

  interface AccountInterface {

    public function id();

    public function getAccountName();

    public function hasPermission(string $permission);

  }
}

namespace Drupal\Core\Entity {

  interface EntityInterface {

    public function id();

    public function label();

  }

  interface EntityTypeManagerInterface {

    public function getStorage(string $type);

  }
}

namespace Drupal\Core\StringTranslation {

  final class TranslatableMarkup {

    public function __construct(private readonly string $string) {}

    public function __toString(): string {
      return $this->string;
    }

  }
}

namespace Drupal\Core\Site {

  final class Settings {

    public static array $all = ['bridgecheck_fixtures' => TRUE];

    public static function get(string $name, mixed $default = NULL): mixed {
      return self::$all[$name] ?? $default;
    }

  }
}

namespace Drupal\Core\Cache {

  interface CacheableResponseInterface {}
}

namespace Symfony\Component\DependencyInjection {

  interface ContainerInterface {

    public function get(string $id): ?object;

  }
}

namespace Symfony\Component\EventDispatcher {

  interface EventSubscriberInterface {

    public static function getSubscribedEvents(): array;

  }
}

namespace Symfony\Component\HttpFoundation {

  class Bag {

    public function __construct(private readonly array $values) {}

    public function get(string $key): mixed {
      $value = $this->values[$key] ?? NULL;
      if (is_array($value)) {
        throw new \UnexpectedValueException("Input value \"$key\" contains a non-scalar value.");
      }
      return $value;
    }

    public function has(string $key): bool {
      return isset($this->values[$key]);
    }

    public function all(): array {
      return $this->values;
    }

  }

  final class Request {

    public readonly Bag $query;
    public readonly Bag $headers;
    public readonly Bag $server;

    public function __construct(
      private readonly string $method,
      private readonly string $path,
      private readonly string $content,
      array $query = [],
      array $headers = [],
    ) {
      $this->query = new Bag($query);
      $this->headers = new Bag($headers);
      $this->server = new Bag(['REQUEST_TIME_FLOAT' => microtime(TRUE), 'QUERY_STRING' => http_build_query($query)]);
    }

    public function getMethod(): string {
      return $this->method;
    }

    public function isMethod(string $method): bool {
      return $this->method === $method;
    }

    public function getPathInfo(): string {
      return $this->path;
    }

    public function getContent(): string {
      return $this->content;
    }

  }

  final class RequestStack {

    public ?Request $request = NULL;

    public function getCurrentRequest(): ?Request {
      return $this->request;
    }

  }

  class Response {

    public function __construct(private string $content, private readonly int $status = 200, array $headers = []) {}

    public function getContent(): string {
      return $this->content;
    }

    public function setContent(string $content): static {
      $this->content = $content;
      return $this;
    }

    public function getStatusCode(): int {
      return $this->status;
    }

    public function isOk(): bool {
      return $this->status === 200;
    }

  }

  final class JsonResponse extends Response {

    public function __construct(mixed $data, int $status = 200, array $headers = []) {
      parent::__construct(json_encode($data, JSON_THROW_ON_ERROR), $status);
    }

  }
}

namespace Symfony\Component\HttpKernel {

  use Symfony\Component\HttpFoundation\Request;
  use Symfony\Component\HttpFoundation\Response;

  final class KernelEvents {

    public const RESPONSE = 'kernel.response';

  }

  interface HttpKernelInterface {

    public const MAIN_REQUEST = 1;

    public function handle(Request $request, int $type = self::MAIN_REQUEST, bool $catch = TRUE): Response;

  }
}

namespace Symfony\Component\HttpKernel\Event {

  use Symfony\Component\HttpFoundation\Request;
  use Symfony\Component\HttpFoundation\Response;

  final class ResponseEvent {

    public function __construct(private readonly Request $request, private readonly Response $response) {}

    public function isMainRequest(): bool {
      return TRUE;
    }

    public function getRequest(): Request {
      return $this->request;
    }

    public function getResponse(): Response {
      return $this->response;
    }

  }
}
