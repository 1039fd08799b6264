<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Core\Discovery\YamlDiscovery;
use Drupal\Core\Extension\ModuleHandlerInterface;

/**
 * Defines the permissions of the site file that no other module defines.
 */
final class Permissions {

  public function __construct(
    private readonly Site $site,
    private readonly ModuleHandlerInterface $moduleHandler,
  ) {}

  /**
   * The permissions.
   *
   * @return array<string, array{title: string}>
   *   The permissions, by name.
   */
  public function all(): array {
    $discovery = new YamlDiscovery('permissions', $this->moduleHandler->getModuleDirectories());
    $defined = array_merge(...array_values($discovery->findAll()) ?: [[]]);
    $missing = [];
    foreach ($this->site->permissions() as $name) {
      if (!isset($defined[$name])) {
        $missing[$name] = ['title' => $name];
      }
    }
    return $missing;
  }

}
