<?php

/**
 * @file
 * Sends requests to an exported module and prints its responses, one a line.
 *
 * Usage: php run.php MODULE < requests.jsonl. A request is {"body", "uid",
 * "name"}; one without a body asks for /jsonrpc/methods as somebody who may run
 * everything. A response is its body.
 */

declare(strict_types=1);

use Drupal\Component\Serialization\Json;
use Drupal\Core\Database\Connection;
use Drupal\Core\Entity\EntityInterface;
use Drupal\Core\Extension\ModuleExtensionList;
use Drupal\Core\Routing\RouteMatchInterface;
use Drupal\Core\Session\AccountInterface;
use Drupal\bridgecheck_fixtures\Behaviour;
use Drupal\bridgecheck_fixtures\EventSubscriber\ResponseSubscriber;
use Drupal\bridgecheck_fixtures\ExactJson;
use Drupal\bridgecheck_fixtures\Runs;
use Drupal\bridgecheck_fixtures\Site;
use Drupal\jsonrpc\Attribute\JsonRpcMethod;
use Drupal\jsonrpc\Exception\JsonRpcException;
use Drupal\jsonrpc\JsonRpcObject\Error;
use Drupal\jsonrpc\JsonRpcObject\ParameterBag;
use Drupal\jsonrpc\ParameterFactory\EntityParameterFactory;
use Drupal\jsonrpc_mcp\Attribute\McpTool;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\RequestStack;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Event\ResponseEvent;

error_reporting(E_ALL);
set_error_handler(function (int $severity, string $message, string $file, int $line): never {
  throw new \ErrorException($message, 0, $severity, $file, $line);
});

$module = $argv[1];
require __DIR__ . '/standins/drupal.php';
require __DIR__ . '/standins/jsonrpc.php';
spl_autoload_register(function (string $class) use ($module): void {
  if (str_starts_with($class, 'Drupal\\bridgecheck_fixtures\\')) {
    require $module . '/src/' . str_replace('\\', '/', substr($class, strlen('Drupal\\bridgecheck_fixtures\\'))) . '.php';
  }
});

/**
 * The site: what stands between a request and the module.
 */
final class Stage implements ContainerInterface, AccountInterface, RouteMatchInterface {

  public string $route = 'jsonrpc.handler';
  public array $caller = ['uid' => 0, 'name' => ''];
  private array $methods = [];
  private readonly Site $site;
  private readonly RequestStack $requests;
  private readonly Behaviour $behaviour;
  private readonly ResponseSubscriber $subscriber;

  public function __construct(string $module) {
    $this->site = new Site(new ModuleExtensionList($module));
    $this->requests = new RequestStack();
    $json = new ExactJson($this->requests);
    $this->behaviour = new Behaviour($this->site, new Runs(new Connection()), $json, $this);
    $this->subscriber = new ResponseSubscriber($this->site, $json, $this, $this);
    $files = glob($module . '/src/Plugin/bridgecheck_fixtures/Method/*.php');
    sort($files);
    foreach ($files as $file) {
      $class = 'Drupal\\bridgecheck_fixtures\\Plugin\\bridgecheck_fixtures\\Method\\' . basename($file, '.php');
      $reflection = new \ReflectionClass($class);
      $method = $reflection->getAttributes(JsonRpcMethod::class)[0]->newInstance();
      foreach ($reflection->getAttributes(McpTool::class) as $tool) {
        $tool->newInstance();
      }
      if ($class::outputSchema() !== $method->output) {
        throw new \LogicException("$class declares two outputs.");
      }
      $this->methods[$method->id] = [$class, $method];
    }
  }

  public function get(string $id): ?object {
    return $id === 'bridgecheck_fixtures.behaviour' ? $this->behaviour : NULL;
  }

  public function id(): int {
    return $this->caller['uid'];
  }

  public function getAccountName(): string {
    return $this->caller['name'];
  }

  public function hasPermission(string $permission): bool {
    return TRUE;
  }

  public function getRouteName(): string {
    return $this->route;
  }

  /**
   * A response as the module leaves it.
   */
  private function send(mixed $document): string {
    $response = new Response((string) Json::encode($document));
    $this->subscriber->onResponse(new ResponseEvent($response));
    return $response->getContent();
  }

  /**
   * POST /jsonrpc.
   */
  public function call(string $body): string {
    $this->route = 'jsonrpc.handler';
    $this->requests->request = new Request('POST', $body);
    $message = json_decode($body, TRUE);
    if (isset($message['jsonrpc'])) {
      return $this->send($this->one($message));
    }
    return $this->send(array_values(array_filter(array_map($this->one(...), array_values($message)))));
  }

  /**
   * One call of a request.
   */
  private function one(array $call): ?array {
    $response = ['jsonrpc' => '2.0', 'id' => $call['id'] ?? NULL];
    try {
      [$class, $method] = $this->methods[$call['method']];
      $arguments = [];
      foreach ($method->params ?? [] as $name => $definition) {
        if (isset($call['params'][$name])) {
          $value = $call['params'][$name];
          $arguments[$name] = $definition->factory === EntityParameterFactory::class ? $this->entity($value) : $value;
        }
      }
      $bag = $arguments ? new ParameterBag($arguments, array_is_list($method->params)) : new ParameterBag([]);
      $result = $class::create($this, [], $call['method'], $method)->execute($bag);
      return isset($call['id']) ? $response + ['result' => $result] : NULL;
    }
    catch (JsonRpcException $e) {
      return array_replace($response, ['id' => NULL]) + ['error' => $e->error];
    }
    catch (\Throwable $e) {
      return $response + ['error' => Error::internalError($e->getMessage())];
    }
  }

  /**
   * An entity of the site.
   */
  private function entity(array $reference): EntityInterface {
    foreach ($this->site->items($reference['type']) as $item) {
      if (($item['uuid'] ?? '') === ($reference['uuid'] ?? '')) {
        return new class($item) implements EntityInterface {

          public function __construct(private readonly array $item) {}

          public function id(): mixed {
            return $this->item['id'];
          }

          public function label(): mixed {
            return $this->item['label'] ?? NULL;
          }

        };
      }
    }
    throw JsonRpcException::fromError(Error::invalidParams('The requested entity could not be found.'));
  }

  /**
   * GET /jsonrpc/methods.
   */
  public function collection(): string {
    $this->route = 'jsonrpc.method_collection';
    $base = 'http://site.test/jsonrpc/methods';
    $data = [];
    foreach ($this->methods as $id => [, $method]) {
      $data[] = [
        'type' => 'JsonRpcMethod',
        'id' => $id,
        'attributes' => array_filter([
          'usage' => (string) $method->usage,
          'params' => array_map($this->parameter(...), $method->params ?? [], array_keys($method->params ?? [])),
          'responseHeaders' => $method->responseHeaders,
          'output' => $method->output,
        ]),
        'links' => ['self' => $base . '/' . str_replace('%2F', '/', rawurlencode($id)), 'collection' => $base],
      ];
      if ($method->params) {
        $data[array_key_last($data)]['attributes']['params'] = array_combine(array_keys($method->params), $data[array_key_last($data)]['attributes']['params']);
      }
    }
    return $this->send(['data' => $data, 'links' => ['self' => $base]]);
  }

  /**
   * A parameter as /jsonrpc/methods shows it.
   */
  private function parameter(object $parameter, string|int $id): array {
    return [
      'type' => 'JsonRpcParameterDefinition',
      'id' => $id,
      'attributes' => array_filter([
        'schema' => $parameter->schema,
        'description' => (string) $parameter->description,
        'factory' => $parameter->factory,
        'required' => $parameter->required,
      ]),
      'schema' => $parameter->getSchema(),
    ];
  }

}

$stage = new Stage($module);
while (($line = fgets(STDIN)) !== FALSE) {
  $request = json_decode($line, TRUE, 512, JSON_THROW_ON_ERROR);
  $stage->caller = $request;
  echo base64_encode(isset($request['body']) ? $stage->call(base64_decode($request['body'])) : $stage->collection()), "\n";
}
