<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Core\Extension\Requirement\RequirementSeverity;
use Drupal\Core\Site\Settings;
use Drupal\Core\StringTranslation\TranslatableMarkup;

/**
 * Why the module refuses to be installed on a site.
 *
 * It is read before the module is installed, so that it uses nothing else of it.
 */
final class Refusals {

  /**
   * The reasons, as requirements of the phase "install".
   */
  public static function requirements(): array {
    $refusals = [];
    if (!Settings::get('bridgecheck_fixtures', FALSE)) {
      $refusals['bridgecheck_fixtures_setting'] = new TranslatableMarkup('This module is for test sites only. Put @line into settings.php to install it.', [
        '@line' => "\$settings['bridgecheck_fixtures'] = TRUE;",
      ]);
    }
    if (!Settings::get('bridgecheck_fixtures_force', FALSE) && self::hasContent()) {
      $refusals['bridgecheck_fixtures_content'] = new TranslatableMarkup('This site has content or accounts of its own. Install the module on an empty site, or put @line into settings.php.', [
        '@line' => "\$settings['bridgecheck_fixtures_force'] = TRUE;",
      ]);
    }
    return array_map(static fn (TranslatableMarkup $why): array => [
      'title' => new TranslatableMarkup('bridgecheck fixtures'),
      'description' => $why,
      'severity' => self::error(),
    ], $refusals);
  }

  /**
   * The severity of an error: an enum from Drupal 11.2 on, before it 2.
   */
  private static function error(): RequirementSeverity|int {
    return enum_exists(RequirementSeverity::class) ? RequirementSeverity::Error : 2;
  }

  /**
   * Whether the site has content, or accounts beside the first one.
   */
  private static function hasContent(): bool {
    $types = \Drupal::entityTypeManager();
    $accounts = $types->getStorage('user')->getQuery()
      ->accessCheck(FALSE)
      ->condition('uid', 1, '>')
      ->count()
      ->execute();
    if ((int) $accounts > 0) {
      return TRUE;
    }
    if (!$types->hasDefinition('node')) {
      return FALSE;
    }
    return (int) $types->getStorage('node')->getQuery()->accessCheck(FALSE)->count()->execute() > 0;
  }

}
