<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\bridgecheck_fixtures\Control\Definitions;
use Drupal\bridgecheck_fixtures\Control\State;
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
   * What the control plane has changed.
   */
  private State $state;

  /**
   * The site file.
   */
  private Site $site;

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
   * Sets the site file, and what the control plane has changed of it.
   */
  public function setSite(Site $site, State $state): void {
    $this->site = $site;
    $this->state = $state;
  }

  /**
   * {@inheritdoc}
   */
  protected function findDefinitions(): array {
    $definitions = parent::findDefinitions();
    if (!Settings::get('bridgecheck_fixtures', FALSE)) {
      return $definitions;
    }
    // The classes are numbered in the order of the site file.
    uasort($definitions, fn (object $a, object $b): int => strcmp($a->getClass(), $b->getClass()));
    if ($this->state->site() !== NULL) {
      $definitions = $this->replaced($definitions);
    }
    $definitions = array_diff_key($definitions, array_flip($this->state->disabled()));
    foreach (array_intersect_key($this->state->methods(), $definitions) as $id => $change) {
      $definitions[$id] = Definitions::change($definitions[$id], $change);
    }
    return $definitions;
  }

  /**
   * The definitions of another site file: exported methods keep their classes.
   */
  private function replaced(array $definitions): array {
    $texts = [];
    foreach (JsonText::parts(JsonText::parts($this->site->exported())['methods'] ?? '[]') ?? [] as $text) {
      $texts[$text] = TRUE;
    }
    $replaced = [];
    foreach ($this->site->methods() as $method) {
      $id = $method['id'];
      $replaced[$id] = isset($texts[$method['text']], $definitions[$id]) ? $definitions[$id] : Definitions::create($method);
    }
    return $replaced;
  }

}
