<?php

/**
 * @file
 * Stand-ins for what the module touches of Drupal core and Symfony.
 *
 * They were written for these tests, from the public documentation, and do as
 * much as the module asks of them.
 */

declare(strict_types=1);

namespace Drupal\Component\Serialization {

  final class Json {

    public static function encode(mixed $variable): string|false {
      return json_encode($variable, JSON_HEX_TAG | JSON_HEX_APOS | JSON_HEX_AMP | JSON_HEX_QUOT);
    }

  }
}

namespace Drupal\Core\Extension {

  final class ModuleExtensionList {

    public function __construct(private readonly string $directory) {}

    public function getPath(string $module): string {
      return $this->directory;
    }

  }
}

namespace Drupal\Core\Database {

  /**
   * A database with one table of numbers.
   */
  final class Connection {

    private array $rows = [];
    private mixed $key = NULL;

    public function startTransaction(): object {
      return new \stdClass();
    }

    public function merge(string $table): static {
      return $this;
    }

    public function key(string $field, string $value): static {
      $this->key = $value;
      return $this;
    }

    public function fields(mixed ...$fields): static {
      return $this;
    }

    public function expression(string $field, string $expression): static {
      return $this;
    }

    public function select(string $table, string $alias): object {
      return new class($this->rows) {

        private mixed $found = FALSE;

        public function __construct(private readonly array $rows) {}

        public function fields(string $alias, array $fields): static {
          return $this;
        }

        public function condition(string $field, string $value): static {
          $this->found = $this->rows[$value] ?? FALSE;
          return $this;
        }

        public function execute(): static {
          return $this;
        }

        public function fetchField(): mixed {
          return $this->found;
        }

      };
    }

    public function execute(): void {
      $this->rows[$this->key] = ($this->rows[$this->key] ?? 0) + 1;
    }

  }
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

namespace Drupal\Core\Routing {

  interface RouteMatchInterface {

    public function getRouteName();

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

  final class Request {

    public object $query;

    public function __construct(private readonly string $method, private readonly string $content) {
      $this->query = new class() {

        public function get(string $key): ?string {
          return NULL;
        }

      };
    }

    public function isMethod(string $method): bool {
      return $this->method === $method;
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

  final class Response {

    public function __construct(private string $content) {}

    public function getContent(): string {
      return $this->content;
    }

    public function setContent(string $content): static {
      $this->content = $content;
      return $this;
    }

    public function isOk(): bool {
      return TRUE;
    }

    public function isClientError(): bool {
      return FALSE;
    }

  }
}

namespace Symfony\Component\HttpKernel {

  final class KernelEvents {

    public const RESPONSE = 'kernel.response';

  }
}

namespace Symfony\Component\HttpKernel\Event {

  use Symfony\Component\HttpFoundation\Response;

  final class ResponseEvent {

    public function __construct(private readonly Response $response) {}

    public function isMainRequest(): bool {
      return TRUE;
    }

    public function getResponse(): Response {
      return $this->response;
    }

  }
}
