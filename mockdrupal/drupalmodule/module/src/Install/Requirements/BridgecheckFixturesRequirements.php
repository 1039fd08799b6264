<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Install\Requirements;

use Drupal\bridgecheck_fixtures\Refusals;
use Drupal\Core\Extension\InstallRequirementsInterface;

/**
 * The requirements of the module, from Drupal 11.2 on.
 */
final class BridgecheckFixturesRequirements implements InstallRequirementsInterface {

  /**
   * {@inheritdoc}
   */
  public static function getRequirements(): array {
    // The module's own classes are not found before it is installed.
    require_once __DIR__ . '/../../Refusals.php';
    return Refusals::requirements();
  }

}
