<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Core\Site\Settings;
use Drupal\jsonrpc\Plugin\JsonRpcMethodManager;

/**
 * Finds the methods of the site file, and no others, in the file's order.
 *
 * All else is the work of the jsonrpc module's plugin manager, attributes and
 * annotations included. The methods lie outside of Plugin/jsonrpc/Method, so
 * that they do not exist where the setting is off.
 */
final class FixtureMethodManager extends JsonRpcMethodManager {

  /**
   * Constructs a FixtureMethodManager.
   *
   * @param mixed ...$arguments
   *   What the jsonrpc module's plugin manager takes in its present version.
   */
  public function __construct(mixed ...$arguments) {
    parent::__construct(...$arguments);
    if (Settings::get('bridgecheck_fixtures', FALSE)) {
      $this->subdir = 'Plugin/bridgecheck_fixtures/Method';
      $this->setCacheBackend($this->cacheBackend, 'bridgecheck_fixtures_methods');
    }
  }

  /**
   * {@inheritdoc}
   */
  protected function findDefinitions(): array {
    $definitions = parent::findDefinitions();
    uasort($definitions, fn (object $a, object $b): int => strnatcmp($a->getClass(), $b->getClass()));
    return $definitions;
  }

}
