<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Plugin;

use Drupal\bridgecheck_fixtures\Behaviour;
use Drupal\jsonrpc\JsonRpcObject\ParameterBag;
use Drupal\jsonrpc\MethodInterface;
use Drupal\jsonrpc\Plugin\JsonRpcMethodBase;
use Symfony\Component\DependencyInjection\ContainerInterface;

/**
 * A method that does what the site file says of it.
 */
abstract class FixtureMethodBase extends JsonRpcMethodBase {

  final public function __construct(
    array $configuration,
    string $plugin_id,
    MethodInterface $plugin_definition,
    private readonly Behaviour $behaviour,
  ) {
    parent::__construct($configuration, $plugin_id, $plugin_definition);
  }

  /**
   * {@inheritdoc}
   */
  public static function create(ContainerInterface $container, array $configuration, $plugin_id, $plugin_definition): static {
    return new static($configuration, $plugin_id, $plugin_definition, $container->get('bridgecheck_fixtures.behaviour'));
  }

  /**
   * {@inheritdoc}
   */
  public function execute(ParameterBag $params): mixed {
    return $this->behaviour->run($this->getPluginId(), $params);
  }

}
