<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\bridgecheck_fixtures\Control\Calls;
use Drupal\bridgecheck_fixtures\Control\Gate;
use Drupal\Core\Entity\EntityInterface;
use Drupal\Core\Session\AccountInterface;
use Drupal\jsonrpc\Exception\JsonRpcException;
use Drupal\jsonrpc\JsonRpcObject\Error;
use Drupal\jsonrpc\JsonRpcObject\ParameterBag;

/**
 * Does what the site file says that a method does when it runs.
 */
final class Behaviour {

  public function __construct(
    private readonly Site $site,
    private readonly Runs $runs,
    private readonly ExactJson $json,
    private readonly AccountInterface $currentUser,
    private readonly Gate $gate,
    private readonly Calls $calls,
  ) {}

  /**
   * Runs a method.
   *
   * @param string $id
   *   The id of the method.
   * @param \Drupal\jsonrpc\JsonRpcObject\ParameterBag $arguments
   *   The arguments, after their parameter factories.
   *
   * @return mixed
   *   The result.
   */
  public function run(string $id, ParameterBag $arguments): mixed {
    $method = $this->site->method($id);
    $does = $method['behaviour'];
    $sent = $this->json->takeArguments($id);
    $runs = $this->runs->add($id);
    $this->gate->pass($id);
    if (!empty($does['sleep'])) {
      usleep($does['sleep'] * 1000);
    }
    try {
      $result = $this->act($method, $sent, $runs, $arguments);
      $this->calls->ran($id, ['result' => $result]);
      return $result;
    }
    catch (\Throwable $e) {
      $this->calls->ran($id, ['exception' => $e::class . ': ' . $e->getMessage()]);
      throw $e;
    }
  }

  /**
   * Does what a method does.
   */
  private function act(array $method, ?string $sent, int $runs, ParameterBag $arguments): mixed {
    $does = $method['behaviour'];
    return match ($does['kind']) {
      'echo' => $this->json->announce('result', JsonText::normalize($sent ?? '{}')),
      'value' => $this->json->announce('result', $does['value']),
      'fail' => throw $this->failure($does),
      'throw' => throw self::exception($does),
      'count' => $runs,
      'runs' => $this->runs->get($does['method']),
      'whoami' => ['uid' => (int) $this->currentUser->id(), 'name' => $this->currentUser->getAccountName()],
      'list' => $this->items($does, $arguments),
      'get' => $this->item($does, $arguments),
      'entity' => self::entity(self::argument($arguments, $does['by'])),
      'pick' => self::pick($does, $arguments),
      'types' => self::types($method['params'], $arguments),
      'concat' => ($does['text'] ?? '') . self::text(self::argument($arguments, $does['by'] ?? '')),
      default => throw new \LogicException("The behaviour {$does['kind']} is not known."),
    };
  }

  /**
   * An argument; NULL where it was not sent.
   */
  private static function argument(ParameterBag $arguments, int|string $name): mixed {
    // An empty bag takes names only, also where parameters go by position.
    if ($name === '' || $arguments->isEmpty()) {
      return NULL;
    }
    return $arguments->get(is_numeric($name) ? (int) $name : $name);
  }

  /**
   * The JSON-RPC error of the behaviour fail.
   */
  private function failure(array $does): JsonRpcException {
    $error = $does['error'];
    $data = isset($error['data']) ? $this->json->announce('data', $error['data']) : NULL;
    return JsonRpcException::fromError(new Error($error['code'], $error['message'], $data));
  }

  /**
   * The PHP exception of the behaviour throw.
   */
  private static function exception(array $does): \Throwable {
    $class = ltrim($does['class'] ?? '', '\\');
    if (!is_a($class, \Exception::class, TRUE) && !is_a($class, \Error::class, TRUE)) {
      $class = \RuntimeException::class;
    }
    $text = $does['text'] ?? '';
    $base = is_a($class, \Error::class, TRUE) ? \Error::class : \Exception::class;
    $reflection = new \ReflectionClass($class);
    if ($reflection->getConstructor()->class === $base) {
      return new $class($text);
    }
    // A constructor of its own may want anything, and only the class and the
    // message are seen outside.
    $exception = $reflection->newInstanceWithoutConstructor();
    (new \ReflectionProperty($base, 'message'))->setValue($exception, $text);
    return $exception;
  }

  /**
   * The items of a content list: those that are asked for.
   */
  private function items(array $does, ParameterBag $arguments): array {
    $items = $this->site->items($does['list']);
    $words = self::argument($arguments, $does['by'] ?? '');
    if ($words !== NULL) {
      $words = mb_strtolower(self::text($words));
      $items = array_filter($items, fn (array $item): bool => str_contains(mb_strtolower(self::text($item[$does['match']] ?? NULL)), $words));
    }
    $page = self::argument($arguments, $does['page'] ?? '');
    if (is_string($page) && $page) {
      throw new \TypeError('Cannot access offset of type string on string');
    }
    if (is_array($page) && $page) {
      $limit = isset($page['limit']) ? (int) $page['limit'] : -1;
      // A negative limit is none, as in SQL.
      $items = array_slice($items, max((int) ($page['offset'] ?? 0), 0), $limit < 0 ? NULL : $limit);
    }
    return array_map(fn (array $item): array => self::fields($item, $does['fields'] ?? []), array_values($items));
  }

  /**
   * One item of a content list.
   */
  private function item(array $does, ParameterBag $arguments): mixed {
    $wanted = self::argument($arguments, $does['by']);
    if (is_array($wanted)) {
      throw new \TypeError('Illegal offset type');
    }
    $text = $does['text'] ?? '';
    // Drupal finds nothing by other types.
    $items = is_string($wanted) || is_int($wanted) ? $this->site->items($does['list']) : [];
    foreach ($items as $item) {
      if (self::text($item[$does['match']] ?? NULL) !== self::text($wanted)) {
        continue;
      }
      if (is_string($item['refused'] ?? NULL)) {
        $text = $item['refused'];
        break;
      }
      return empty($does['field']) ? self::fields($item, $does['fields'] ?? []) : ($item[$does['field']] ?? NULL);
    }
    $text = str_replace('{' . $does['by'] . '}', self::text($wanted), $text);
    throw JsonRpcException::fromError(Error::invalidParams($text === '' ? NULL : $text));
  }

  /**
   * What the behaviour entity shows of an entity.
   */
  private static function entity(mixed $entity): ?array {
    return $entity instanceof EntityInterface ? ['label' => $entity->label(), 'id' => $entity->id()] : $entity;
  }

  /**
   * The named arguments, beside what is always there.
   */
  private static function pick(array $does, ParameterBag $arguments): array {
    $result = isset($does['value']) ? json_decode($does['value'], TRUE) : [];
    foreach ($does['fields'] ?? [] as $name) {
      $result[$name] = self::argument($arguments, $name);
    }
    return $result;
  }

  /**
   * PHP's name of the type of every argument.
   */
  private static function types(array $params, ParameterBag $arguments): array {
    $types = [];
    foreach ($params as $name) {
      $value = self::argument($arguments, $name);
      $types[$name] = ['type' => get_debug_type($value), 'value' => $value];
    }
    return $types;
  }

  /**
   * The named members of an item; all where none are named.
   */
  private static function fields(array $item, array $names): array {
    if (!$names) {
      return $item;
    }
    $fields = [];
    foreach ($names as $name) {
      $fields[$name] = $item[$name] ?? NULL;
    }
    return $fields;
  }

  /**
   * A value as PHP writes it into a text.
   */
  private static function text(mixed $value): string {
    return is_array($value) ? 'Array' : (string) $value;
  }

}
