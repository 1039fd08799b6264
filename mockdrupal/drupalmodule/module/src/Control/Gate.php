<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\Core\Database\Connection;

/**
 * Lets calls of frozen methods wait until they are stepped.
 */
final class Gate {

  public const TABLE = 'bridgecheck_fixtures_waiting';

  /**
   * How long a call waits at most, in seconds.
   */
  private const LONGEST = 60;

  public function __construct(
    private readonly Connection $database,
    private readonly State $state,
  ) {}

  /**
   * Waits where the method is frozen.
   */
  public function pass(string $method): void {
    if (!$this->isFrozen($method)) {
      return;
    }
    $number = $this->database->insert(self::TABLE)->fields(['released' => 0])->execute();
    $end = time() + self::LONGEST;
    while (time() < $end && !$this->isReleased((int) $number) && $this->isFrozen($method)) {
      usleep(20_000);
    }
    $this->database->delete(self::TABLE)->condition('number', $number)->execute();
  }

  /**
   * How many calls wait.
   */
  public function waiting(): int {
    return count($this->numbers());
  }

  /**
   * Lets the calls go on that have waited longest.
   *
   * @return int
   *   How many there were.
   */
  public function step(int $count): int {
    $numbers = array_slice($this->numbers(), 0, $count);
    foreach ($numbers as $number) {
      $this->database->update(self::TABLE)->fields(['released' => 1])->condition('number', $number)->execute();
    }
    return count($numbers);
  }

  /**
   * Whether calls of a method wait.
   */
  private function isFrozen(string $method): bool {
    $pattern = $this->state->frozen();
    return $pattern !== NULL && Pattern::matches($pattern, $method);
  }

  /**
   * Whether a call may go on.
   */
  private function isReleased(int $number): bool {
    return !in_array($number, $this->numbers(), TRUE);
  }

  /**
   * The numbers of the calls that wait, in the order of their arrival.
   *
   * @return list<int>
   *   The numbers.
   */
  private function numbers(): array {
    $numbers = $this->database->select(self::TABLE, 'w')
      ->fields('w', ['number'])
      ->condition('released', 0)
      ->orderBy('number')
      ->execute()
      ->fetchCol();
    return array_map(intval(...), $numbers);
  }

}
