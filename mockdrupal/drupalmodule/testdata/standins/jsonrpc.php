<?php

/**
 * @file
 * Stand-ins for what the module touches of the jsonrpc and jsonrpc_mcp modules.
 *
 * They were written for these tests, from the public documentation, and do as
 * much as the module asks of them.
 */

declare(strict_types=1);

namespace Drupal\jsonrpc {

  interface MethodInterface {

    public function getClass();

  }
}

namespace Drupal\jsonrpc\Attribute {

  use Drupal\Core\StringTranslation\TranslatableMarkup;
  use Drupal\jsonrpc\MethodInterface;

  #[\Attribute(\Attribute::TARGET_CLASS)]
  final class JsonRpcMethod implements MethodInterface {

    public function __construct(
      public readonly string $id,
      public readonly TranslatableMarkup $usage,
      public readonly array $access = [],
      public readonly ?array $params = NULL,
      public readonly ?array $output = NULL,
      public readonly array $responseHeaders = [],
    ) {}

    private string $class;

    public function setClass(string $class): void {
      $this->class = $class;
    }

    public function setProvider(string $provider): void {}

    public function getClass(): string {
      return $this->class;
    }

    public function get(): static {
      return $this;
    }

  }

  final class JsonRpcParameterDefinition {

    public function __construct(
      public readonly string $id,
      public readonly ?array $schema = NULL,
      public readonly ?string $factory = NULL,
      public readonly ?TranslatableMarkup $description = NULL,
      public readonly ?bool $required = FALSE,
    ) {
      if (($schema === NULL) === ($factory === NULL)) {
        throw new \LogicException("The parameter $id needs a schema or a factory, not both.");
      }
    }

    public function getDescription(): ?TranslatableMarkup {
      return $this->description;
    }

    public function isRequired(): bool {
      return (bool) $this->required;
    }

    public function getSchema(): ?array {
      return $this->factory ? $this->factory::schema() : $this->schema;
    }

  }
}

namespace Drupal\jsonrpc_mcp\Attribute {

  #[\Attribute(\Attribute::TARGET_CLASS)]
  final class McpTool {

    public function __construct(
      public readonly ?string $title = NULL,
      public readonly ?array $annotations = NULL,
    ) {
      if ($annotations !== NULL && array_is_list($annotations)) {
        throw new \InvalidArgumentException('McpTool annotations must be an associative array');
      }
    }

  }
}

namespace Drupal\jsonrpc\ParameterFactory {

  final class PaginationParameterFactory {

    public static function schema(): array {
      $number = ['type' => 'integer', 'minimum' => 0];
      return ['type' => 'object', 'properties' => ['limit' => $number, 'offset' => $number]];
    }

  }

  final class EntityParameterFactory {

    public static function schema(): array {
      $text = ['type' => 'string'];
      return ['type' => 'object', 'properties' => ['type' => $text, 'uuid' => $text]];
    }

  }
}

namespace Drupal\jsonrpc\JsonRpcObject {

  final class ParameterBag {

    public function __construct(
      private readonly array $parameters,
      private readonly bool $positional = FALSE,
    ) {}

    public function get(string|int $key): mixed {
      if ($this->positional !== is_int($key)) {
        throw new \InvalidArgumentException('The key does not fit how the parameters go.');
      }
      return $this->parameters[$key] ?? NULL;
    }

    public function isEmpty(): bool {
      return !$this->parameters;
    }

  }

  final class Error {

    public function __construct(
      public readonly int $code,
      public readonly string $message,
      public readonly mixed $data = NULL,
    ) {}

    public static function invalidParams(mixed $data = NULL): self {
      return new self(-32602, 'Invalid Params', $data ?: 'Invalid method parameter(s).');
    }

    public static function internalError(mixed $data = NULL): self {
      return new self(-32603, 'Internal Error', $data ?: 'Internal JSON-RPC error.');
    }

  }
}

namespace Drupal\jsonrpc\Exception {

  use Drupal\jsonrpc\JsonRpcObject\Error;

  final class JsonRpcException extends \Exception {

    public Error $error;

    public static function fromError(Error $error): self {
      $exception = new self($error->message, $error->code);
      $exception->error = $error;
      return $exception;
    }

  }
}

namespace Drupal\jsonrpc\Plugin {

  use Drupal\jsonrpc\MethodInterface;

  abstract class JsonRpcMethodBase {

    public function __construct(array $configuration, private readonly string $pluginId, MethodInterface $plugin_definition) {}

    public function getPluginId(): string {
      return $this->pluginId;
    }

    abstract public static function outputSchema();

  }

  /**
   * Finds methods by the attributes of the classes in a directory.
   */
  class JsonRpcMethodManager implements \Drupal\Component\Plugin\Discovery\CachedDiscoveryInterface {

    protected string $subdir = 'Plugin/jsonrpc/Method';
    protected mixed $cacheBackend = NULL;
    private ?array $definitions = NULL;

    public function __construct(private readonly string $module) {}

    public function setCacheBackend(mixed $backend, string $key): void {}

    public function getDefinitions(): array {
      return $this->definitions ??= $this->findDefinitions();
    }

    public function clearCachedDefinitions(): void {
      $this->definitions = NULL;
    }

    protected function findDefinitions() {
      $definitions = [];
      $files = glob($this->module . '/src/' . $this->subdir . '/*.php');
      // As a file system does, in no order.
      shuffle($files);
      foreach ($files as $file) {
        $class = 'Drupal\\bridgecheck_fixtures\\' . str_replace('/', '\\', $this->subdir) . '\\' . basename($file, '.php');
        $attribute = (new \ReflectionClass($class))->getAttributes(\Drupal\jsonrpc\Attribute\JsonRpcMethod::class)[0]->newInstance();
        $attribute->setClass($class);
        $definitions[$attribute->id] = $attribute->get();
      }
      return $definitions;
    }

  }
}
