<?php

/**
 * @file
 * Sends requests to an exported module and prints its responses, one a line.
 *
 * Usage: php run.php MODULE < requests.jsonl, or with the file as the second
 * argument, where PHP has no standard input. A request is {"verb", "path",
 * "query", "body", "authorization", "uid", "name"}, a response its status and
 * its body; bodies are in base64. The verb UNINSTALL uninstalls the module;
 * its response is what the site stored before, during and after.
 */

declare(strict_types=1);

use Drupal\Component\Serialization\Json;
use Drupal\Core\Database\Connection;
use Drupal\Core\Entity\EntityInterface;
use Drupal\Component\Datetime\Time;
use Drupal\Core\Cache\Tags;
use Drupal\Core\Config\ConfigFactory;
use Drupal\Core\KeyValueStore\MemoryFactory;
use Drupal\Core\Session\AccountInterface;
use Drupal\bridgecheck_fixtures\Behaviour;
use Drupal\bridgecheck_fixtures\Control\Calls;
use Drupal\bridgecheck_fixtures\Control\ControlMiddleware;
use Drupal\bridgecheck_fixtures\Control\ControlPlane;
use Drupal\bridgecheck_fixtures\Control\Gate;
use Drupal\bridgecheck_fixtures\Control\Journal;
use Drupal\bridgecheck_fixtures\Control\Patcher;
use Drupal\bridgecheck_fixtures\Control\State;
use Drupal\bridgecheck_fixtures\EventSubscriber\ResponseSubscriber;
use Drupal\bridgecheck_fixtures\ExactJson;
use Drupal\bridgecheck_fixtures\Extensions;
use Drupal\bridgecheck_fixtures\FixtureMethodManager;
use Drupal\bridgecheck_fixtures\Installer;
use Drupal\bridgecheck_fixtures\Runs;
use Drupal\bridgecheck_fixtures\Site;
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
use Symfony\Component\HttpKernel\HttpKernelInterface;

error_reporting(E_ALL);
set_error_handler(function (int $severity, string $message, string $file, int $line): never {
  throw new \ErrorException($message, 0, $severity, $file, $line);
});

$argv = isset($_SERVER['ARGV_JSON']) ? [__FILE__, ...json_decode($_SERVER['ARGV_JSON'])] : $argv;
$module = $argv[1];
require __DIR__ . '/standins/drupal.php';
require __DIR__ . '/standins/jsonrpc.php';
require __DIR__ . '/standins/people.php';
spl_autoload_register(function (string $class) use ($module): void {
  if (str_starts_with($class, 'Drupal\\bridgecheck_fixtures\\')) {
    require $module . '/src/' . str_replace('\\', '/', substr($class, strlen('Drupal\\bridgecheck_fixtures\\'))) . '.php';
  }
});

/**
 * The site: what stands between a request and the module.
 */
final class Stage implements ContainerInterface, AccountInterface, HttpKernelInterface {

  public array $caller = ['uid' => 0, 'name' => ''];
  private readonly MemoryFactory $memory;
  private readonly People $people;
  private readonly ConfigFactory $config;
  private readonly Installer $installer;
  private readonly array $before;
  private readonly FixtureMethodManager $methods;
  private readonly Site $site;
  private readonly RequestStack $requests;
  private readonly Behaviour $behaviour;
  private readonly ResponseSubscriber $subscriber;
  private readonly ControlMiddleware $middleware;

  public function __construct(string $module) {
    $this->memory = new MemoryFactory();
    $state = new State($this->memory);
    $this->site = new Site($state);
    $this->requests = new RequestStack();
    $json = new ExactJson($this->requests);
    $calls = new Calls();
    $database = new Connection();
    $gate = new Gate($database, $state);
    $journal = new Journal($database, $state);
    $runs = new Runs($database);
    $this->people = new People($this->site);
    $this->behaviour = new Behaviour($this->site, $runs, $json, $this, $gate, $calls);
    $this->subscriber = new ResponseSubscriber(new Extensions($this->site, $state), $json, $this, $journal, $calls);
    $this->methods = new FixtureMethodManager($module);
    $this->methods->setSite($this->site, $state);
    $patcher = new Patcher($this->site, $state, $this->people, $this->people);
    $this->config = new ConfigFactory();
    $this->installer = new Installer($this->site, $this->people, $this->memory, $this->config);
    $this->before = $this->stored();
    $this->installer->install();
    $plane = new ControlPlane($this->site, $state, $patcher, $journal, $gate, $runs, $this->methods, new Tags(), $database, new Time(), $this->installer);
    $this->middleware = new ControlMiddleware($this, fn () => $plane);
    foreach ($this->methods->getDefinitions() as $id => $method) {
      $class = $method->getClass();
      foreach ((new \ReflectionClass($class))->getAttributes(McpTool::class) as $tool) {
        $tool->newInstance();
      }
      if ($class::outputSchema() !== $method->output) {
        throw new \LogicException("$id declares two outputs.");
      }
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

  /**
   * What the site stores: entities, configuration and the module's own values.
   */
  private function stored(): array {
    $own = array_map(fn (object $store): array => $store->values, $this->memory->collections);
    return [$this->people->values(), $this->config->values, array_filter($own)];
  }

  /**
   * Uninstalls the module.
   */
  public function uninstall(): Response {
    $during = $this->stored();
    $this->installer->uninstall();
    return new Response((string) json_encode(['before' => $this->before, 'during' => $during, 'after' => $this->stored()]));
  }

  /**
   * A request through the middleware.
   */
  public function serve(Request $request): Response {
    return $this->middleware->handle($request);
  }

  /**
   * {@inheritdoc}
   */
  public function handle(Request $request, int $type = self::MAIN_REQUEST, bool $catch = TRUE): Response {
    $document = match ($request->getPathInfo()) {
      '/jsonrpc' => $this->call($request),
      '/jsonrpc/methods' => $this->collection(),
      default => NULL,
    };
    $response = match (TRUE) {
      $request->getMethod() === 'OPTIONS' => new Response(''),
      $document === NULL => new Response('', 404),
      default => new Response((string) Json::encode($document)),
    };
    $this->subscriber->onResponse(new ResponseEvent($request, $response));
    return $response;
  }

  /**
   * POST /jsonrpc.
   */
  private function call(Request $request): array {
    $this->requests->request = $request;
    $message = json_decode($request->getContent(), TRUE);
    if (isset($message['jsonrpc'])) {
      return $this->one($message) ?? [];
    }
    return array_values(array_filter(array_map($this->one(...), array_values($message))));
  }

  /**
   * One call of a request.
   */
  private function one(array $call): ?array {
    $response = ['jsonrpc' => '2.0', 'id' => $call['id'] ?? NULL];
    try {
      $method = $this->methods->getDefinitions()[$call['method']];
      $class = $method->getClass();
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
  private function collection(): array {
    $base = 'http://site.test/jsonrpc/methods';
    $data = [];
    foreach ($this->methods->getDefinitions() as $id => $method) {
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
    return ['data' => $data, 'links' => ['self' => $base]];
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
$requests = fopen($argv[2] ?? 'php://stdin', 'r');
while (($line = fgets($requests)) !== FALSE) {
  $sent = json_decode($line, TRUE, 512, JSON_THROW_ON_ERROR);
  $stage->caller = ['uid' => $sent['uid'] ?? 0, 'name' => $sent['name'] ?? ''];
  $headers = isset($sent['authorization']) ? ['Authorization' => $sent['authorization']] : [];
  $request = new Request($sent['verb'], $sent['path'], base64_decode($sent['body'] ?? ''), $sent['query'] ?? [], $headers);
  $response = $sent['verb'] === 'UNINSTALL' ? $stage->uninstall() : $stage->serve($request);
  echo $response->getStatusCode(), ' ', base64_encode($response->getContent()), "\n";
}
