<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

/**
 * The methods that the present request has run, with what came of them.
 */
final class Calls {

  /**
   * The outcomes, by method, in the order of the runs.
   *
   * @var array<string, list<array>>
   */
  private array $outcomes = [];

  /**
   * Notes a run.
   *
   * @param string $method
   *   The method.
   * @param array{result?: mixed, exception?: string} $outcome
   *   Its result, or the exception's class and message.
   */
  public function ran(string $method, array $outcome): void {
    $this->outcomes[$method][] = $outcome;
  }

  /**
   * The outcome of the next run of a method; NULL where it did not run.
   */
  public function take(string $method): ?array {
    return empty($this->outcomes[$method]) ? NULL : array_shift($this->outcomes[$method]);
  }

}
