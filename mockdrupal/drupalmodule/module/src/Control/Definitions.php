<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\bridgecheck_fixtures\Plugin\ChangedMethod;
use Drupal\Core\StringTranslation\TranslatableMarkup;
use Drupal\jsonrpc\Attribute\JsonRpcMethod;
use Drupal\jsonrpc\Attribute\JsonRpcParameterDefinition;
use Drupal\jsonrpc\MethodInterface;

/**
 * Changes definitions of methods as the control plane wants them.
 *
 * A class's outputSchema() stays as it was exported.
 */
final class Definitions {

  /**
   * A changed definition.
   *
   * @param \Drupal\jsonrpc\MethodInterface $definition
   *   The definition.
   * @param array{usage?: string, access?: list<string>, schemas?: array<string, array>, output?: array} $change
   *   What changes.
   */
  public static function change(MethodInterface $definition, array $change): MethodInterface {
    $class = $definition->getClass();
    $attributes = (new \ReflectionClass($class))->getAttributes(JsonRpcMethod::class);
    if (!$attributes) {
      return self::changeAnnotation($definition, $change);
    }
    // As the plugin discovery makes it, of other arguments.
    $arguments = $attributes[0]->getArguments();
    foreach (['access', 'output'] as $name) {
      if (isset($change[$name])) {
        $arguments[$name] = $change[$name];
      }
    }
    if (isset($change['usage'])) {
      // phpcs:ignore Drupal.Semantics.FunctionT.NotLiteralString
      $arguments['usage'] = new TranslatableMarkup($change['usage']);
    }
    foreach ($change['schemas'] ?? [] as $name => $schema) {
      $was = $arguments['params'][$name];
      $arguments['params'][$name] = new JsonRpcParameterDefinition((string) $name, $schema, NULL, $was->getDescription(), $was->isRequired());
    }
    $attribute = new JsonRpcMethod(...$arguments);
    $attribute->setClass($class);
    $attribute->setProvider('bridgecheck_fixtures');
    return $attribute->get();
  }

  /**
   * The definition of a method that has no class of its own.
   *
   * @param array $method
   *   The method, as SiteFile reads it.
   */
  public static function create(array $method): MethodInterface {
    // phpcs:disable Drupal.Semantics.FunctionT.NotLiteralString
    $params = [];
    foreach ($method['definitions'] ?? [] as $name => $p) {
      $description = $p['description'] === NULL ? NULL : new TranslatableMarkup($p['description']);
      $params[$name] = new JsonRpcParameterDefinition((string) $name, $p['schema'], $p['factory'], $description, $p['required']);
      // The manager does this to those that it discovers: a position stays a
      // number.
      if (method_exists($params[$name], 'setId')) {
        $params[$name]->setId($name);
      }
    }
    $attribute = new JsonRpcMethod(
      id: $method['id'],
      usage: new TranslatableMarkup($method['usage']),
      access: $method['access'],
      params: $method['definitions'] === NULL ? NULL : $params,
      output: $method['output'],
      responseHeaders: $method['headers'],
    );
    // phpcs:enable
    $attribute->setClass(ChangedMethod::class);
    $attribute->setProvider('bridgecheck_fixtures');
    return $attribute->get();
  }

  /**
   * A changed definition of the jsonrpc module's line 2: members are public.
   */
  private static function changeAnnotation(MethodInterface $definition, array $change): MethodInterface {
    $changed = clone $definition;
    foreach (['access', 'output'] as $name) {
      if (isset($change[$name])) {
        $changed->{$name} = $change[$name];
      }
    }
    if (isset($change['usage'])) {
      // phpcs:ignore Drupal.Semantics.FunctionT.NotLiteralString
      $changed->usage = new TranslatableMarkup($change['usage']);
    }
    foreach ($change['schemas'] ?? [] as $name => $schema) {
      $changed->params[$name] = clone $changed->params[$name];
      $changed->params[$name]->schema = $schema;
      $changed->params[$name]->factory = NULL;
    }
    return $changed;
  }

}
