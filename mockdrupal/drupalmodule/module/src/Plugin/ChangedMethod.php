<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Plugin;

/**
 * A method that came by the control plane, in place of a class of its own.
 */
final class ChangedMethod extends FixtureMethodBase {

  /**
   * {@inheritdoc}
   */
  public static function outputSchema(): ?array {
    return NULL;
  }

}
