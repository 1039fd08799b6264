<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\bridgecheck_fixtures\Installer;
use Drupal\bridgecheck_fixtures\Runs;
use Drupal\bridgecheck_fixtures\Site;
use Drupal\Component\Datetime\TimeInterface;
use Drupal\Component\Plugin\Discovery\CachedDiscoveryInterface;
use Drupal\Core\Cache\CacheTagsInvalidatorInterface;
use Drupal\Core\Database\Connection;
use Drupal\jsonrpc\Attribute\JsonRpcMethod;

/**
 * The part of the mock's control plane that a real site can offer.
 *
 * Addresses, requests and responses are the mock's; what a real site cannot do
 * is refused with 501 and the reason.
 */
final class ControlPlane {

  public function __construct(
    private readonly Site $site,
    private readonly State $state,
    private readonly Patcher $patcher,
    private readonly Journal $journal,
    private readonly Gate $gate,
    private readonly Runs $runs,
    private readonly CachedDiscoveryInterface $methods,
    private readonly CacheTagsInvalidatorInterface $cacheTags,
    private readonly Connection $database,
    private readonly TimeInterface $time,
    private readonly Installer $installer,
  ) {}

  /**
   * Does what a request asks for.
   *
   * @return array|string|null
   *   The response: a value, a JSON document, or nothing.
   *
   * @throws \Drupal\bridgecheck_fixtures\Control\ControlException
   *   When the request is refused.
   */
  public function handle(string $verb, string $path, array $query, string $body): array|string|null {
    [$what, $rest] = explode('/', $path, 2) + [1 => ''];
    return match ("$verb $what") {
      'GET site' => $this->patcher->siteFile(),
      'PUT site' => $this->replace($body),
      'PATCH site' => $this->patch($body),
      'GET journal' => $this->journal->read(self::filter($query)),
      'DELETE journal' => $this->nothing($this->journal->clear(...)),
      'GET runs' => $this->countRuns(rawurldecode($rest)),
      'GET clock' => ['now' => gmdate('Y-m-d\TH:i:s\Z', $this->time->getCurrentTime())],
      'PUT freeze' => $this->freeze($body),
      'DELETE freeze' => $this->nothing(fn () => $this->state->set('frozen', NULL)),
      'GET waiting' => ['waiting' => $this->gate->waiting()],
      'POST step' => $this->step($body),
      'DELETE caches' => $this->nothing($this->clearCaches(...)),
      'DELETE flood' => $this->nothing($this->clearFlood(...)),
      'PUT flood' => throw ControlException::unable('flood control is as the site has it; DELETE forgets all failures'),
      'POST clock' => throw ControlException::unable('the clock of a real site cannot be moved'),
      'GET faults', 'POST faults', 'DELETE faults', 'GET fault-kinds' => throw ControlException::unable('faults on the way are made by the recording proxy (--drupal-proxy)'),
      'GET quirks', 'PUT quirks', 'DELETE quirks' => throw ControlException::unable('a real site has the quirks that it has'),
      default => throw new ControlException("the control plane has no $verb " . ControlMiddleware::PREFIX . $path, 404),
    };
  }

  /**
   * Does something that has no result.
   */
  private function nothing(callable $what): null {
    $what();
    return NULL;
  }

  /**
   * Puts another site file in place.
   */
  private function replace(string $body): null {
    $before = $this->site->users();
    $isExported = rtrim($body) === rtrim($this->site->exported());
    $site = SiteFile::read($body);
    if (!$isExported && !class_exists(JsonRpcMethod::class)) {
      throw ControlException::unable('methods can be put in place where the jsonrpc module has attributes: from its line 3 on');
    }
    $isExported ? $this->state->replace(NULL, NULL) : $this->state->replace($site, $body);
    $this->site->reset();
    $this->clearCaches();
    $this->installer->replace($before);
    $this->clearFlood();
    return NULL;
  }

  /**
   * Changes the site.
   */
  private function patch(string $body): null {
    $this->patcher->apply(self::decode($body, ['disable', 'enable', 'methods', 'roles', 'users', 'extensions']));
    $this->clearCaches();
    return NULL;
  }

  /**
   * Says how often a method ran.
   */
  private function countRuns(string $method): array {
    if (!$this->site->hasMethod($method)) {
      throw new ControlException("the site has no method \"$method\"", 404);
    }
    return ['runs' => $this->runs->get($method)];
  }

  /**
   * Lets calls wait.
   */
  private function freeze(string $body): null {
    $pattern = self::decode($body, ['method'])['method'] ?? NULL;
    if (!is_string($pattern) || !array_filter($this->site->ids(), fn (string $id): bool => Pattern::matches($pattern, $id))) {
      throw ControlException::bad('freeze.methods: no method that is on the site matches ' . json_encode($pattern));
    }
    $this->state->set('frozen', $pattern);
    return NULL;
  }

  /**
   * Lets calls go on.
   */
  private function step(string $body): array {
    $count = self::decode($body, ['count'])['count'] ?? 0;
    if (!is_int($count) || $count < 1) {
      throw ControlException::bad('count: ' . json_encode($count) . ' calls cannot go on; give 1 or more');
    }
    return ['stepped' => $this->gate->step($count)];
  }

  /**
   * Clears what Drupal has cached of methods and responses.
   */
  private function clearCaches(): void {
    $this->methods->clearCachedDefinitions();
    $this->cacheTags->invalidateTags(['http_response', 'rendered', 'jsonrpc_mcp:discovery']);
  }

  /**
   * Forgets failed logins.
   */
  private function clearFlood(): void {
    // The table comes with the first failure.
    if ($this->database->schema()->tableExists('flood')) {
      $this->database->delete('flood')->execute();
    }
  }

  /**
   * Reads a JSON body with no other members than these.
   */
  private static function decode(string $body, array $members): array {
    $value = json_decode($body, TRUE);
    if (!is_array($value)) {
      throw ControlException::bad('the body is no JSON object');
    }
    Patcher::checkMembers($value, $members, 'the body');
    return $value;
  }

  /**
   * Reads a filter of the journal.
   */
  private static function filter(array $query): array {
    $filter = [];
    foreach ($query as $name => $value) {
      $filter[$name] = match ($name) {
        'after', 'status', 'limit' => ctype_digit((string) $value) ? (int) $value : throw ControlException::bad("$name: \"$value\" is no number"),
        'ran' => filter_var($value, FILTER_VALIDATE_BOOL, FILTER_NULL_ON_FAILURE) ?? throw ControlException::bad("ran: \"$value\" is neither true nor false"),
        'user', 'method', 'route', 'fault' => (string) $value,
        default => throw ControlException::bad("the journal has no filter \"$name\": it has after, user, method, route, status, fault, ran and limit"),
      };
    }
    return $filter;
  }

}
