<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\Core\Database\Connection;

/**
 * What reached the site's JSON-RPC interface, and what ran.
 */
final class Journal {

  public const TABLE = 'bridgecheck_fixtures_journal';

  /**
   * How many entries it keeps.
   */
  public const LIMIT = 10_000;

  public function __construct(
    private readonly Connection $database,
    private readonly State $state,
  ) {}

  /**
   * Adds an entry.
   */
  public function add(array $entry): void {
    $number = (int) $this->database->insert(self::TABLE)
      ->fields(['entry' => json_encode($entry, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE)])
      ->execute();
    if ($number % 100 === 0) {
      $this->database->delete(self::TABLE)->condition('seq', $number - self::LIMIT, '<=')->execute();
    }
  }

  /**
   * The entries that a filter selects.
   *
   * @param array{after?: int, user?: string, method?: string, route?: string, status?: int, fault?: string, ran?: bool, limit?: int} $filter
   *   The filter; what is missing selects all.
   */
  public function read(array $filter): array {
    $after = $filter['after'] ?? 0;
    $rows = $this->database->select(self::TABLE, 'j')
      ->fields('j', ['seq', 'entry'])
      ->condition('seq', $after, '>')
      ->orderBy('seq')
      ->execute()
      ->fetchAllKeyed();
    $entries = [];
    foreach ($rows as $number => $row) {
      $entry = ['seq' => (int) $number] + json_decode($row, TRUE);
      if (self::selects($filter, $entry)) {
        // An empty object, which PHP's arrays have no form for.
        $entry['header'] = (object) $entry['header'];
        $entries[] = $entry;
      }
    }
    $last = max((int) array_key_last($rows), $this->state->cleared());
    return [
      'entries' => empty($filter['limit']) ? $entries : array_slice($entries, -$filter['limit']),
      'last' => $last,
      'dropped' => max(0, $last - self::LIMIT),
      'lost' => max(0, $last - max($after, $this->state->cleared()) - count($rows)),
    ];
  }

  /**
   * Forgets all entries.
   */
  public function clear(): void {
    $this->state->set('cleared', $this->read([])['last']);
    $this->database->delete(self::TABLE)->execute();
  }

  /**
   * Whether a filter selects an entry.
   */
  private static function selects(array $filter, array $entry): bool {
    foreach (['route', 'status', 'fault'] as $name) {
      if (!empty($filter[$name]) && $filter[$name] !== $entry[$name]) {
        return FALSE;
      }
    }
    $user = $filter['user'] ?? '';
    if ($user !== '' && $user !== ($entry['user'] === '' ? 'anonymous' : $entry['user'])) {
      return FALSE;
    }
    $method = $filter['method'] ?? '';
    if ($method !== '' && !array_filter($entry['calls'], fn (array $call): bool => Pattern::matches($method, $call['method']))) {
      return FALSE;
    }
    return empty($filter['ran']) || in_array(TRUE, array_column($entry['calls'], 'ran'), TRUE);
  }

}
