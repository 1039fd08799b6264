<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Core\DependencyInjection\ContainerBuilder;
use Drupal\Core\DependencyInjection\ServiceProviderBase;
use Drupal\Core\Password\PhpPassword;
use Drupal\Core\Site\Settings;
use Symfony\Component\DependencyInjection\Reference;

/**
 * Puts the methods of the site file in place of the site's own.
 *
 * It does so only where settings.php says so; rebuild the caches after a change
 * of that setting.
 */
final class BridgecheckFixturesServiceProvider extends ServiceProviderBase {

  /**
   * {@inheritdoc}
   */
  public function alter(ContainerBuilder $container): void {
    if (!Settings::get('bridgecheck_fixtures', FALSE)) {
      return;
    }
    if ($container->hasDefinition('plugin.manager.jsonrpc_method')) {
      $container->getDefinition('plugin.manager.jsonrpc_method')
        ->setClass(FixtureMethodManager::class)
        ->addMethodCall('setSite', [
          new Reference('bridgecheck_fixtures.site'),
          new Reference('bridgecheck_fixtures.control_state'),
        ]);
    }
    if ($container->hasDefinition('jsonrpc.schema_validator')) {
      $container->getDefinition('jsonrpc.schema_validator')->setClass(SchemaValidator::class);
    }
    // Everybody knows the accounts' passwords, and Basic authentication verifies
    // one in each request: by core's options a fifth of a second of CPU from PHP 8.4.
    if ($container->getDefinition('password')->getClass() === PhpPassword::class) {
      $container->getDefinition('password')->setArguments([PASSWORD_BCRYPT, ['cost' => 4]]);
    }
    $container->getDefinition('bridgecheck_fixtures.response_subscriber')->addTag('event_subscriber');
    // After the modules are loaded, before the session and authentication.
    $container->getDefinition('bridgecheck_fixtures.control_middleware')->addTag('http_middleware', ['priority' => 60]);
  }

}
