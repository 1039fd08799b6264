<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

/**
 * Patterns of method ids: * and ? match all but a slash, * alone everything.
 */
final class Pattern {

  /**
   * Whether an id matches a pattern.
   */
  public static function matches(string $pattern, string $id): bool {
    return $pattern === '*' || fnmatch($pattern, $id, FNM_PATHNAME);
  }

}
