<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Core\Database\Connection;

/**
 * Counts how often each method ran, over all requests.
 */
final class Runs {

  public const TABLE = 'bridgecheck_fixtures_runs';

  public function __construct(
    private readonly Connection $database,
  ) {}

  /**
   * Counts one run and returns how many there are now.
   */
  public function add(string $method): int {
    // In one transaction: the row stays locked, so that of two runs at a time
    // each gets a number of its own.
    $transaction = $this->database->startTransaction();
    $this->database->merge(self::TABLE)
      ->key('method', self::key($method))
      ->fields(['runs' => 1])
      ->expression('runs', 'runs + 1')
      ->execute();
    $runs = $this->get($method);
    unset($transaction);
    return $runs;
  }

  /**
   * How often a method ran.
   */
  public function get(string $method): int {
    return (int) $this->database->select(self::TABLE, 'r')
      ->fields('r', ['runs'])
      ->condition('method', self::key($method))
      ->execute()
      ->fetchField();
  }

  /**
   * Method ids can differ in letter case alone; database columns may not care.
   */
  private static function key(string $method): string {
    return hash('sha256', $method);
  }

}
