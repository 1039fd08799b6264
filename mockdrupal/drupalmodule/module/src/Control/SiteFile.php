<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\bridgecheck_fixtures\JsonText;
use Drupal\jsonrpc\ParameterFactory\EntityParameterFactory;
use Drupal\jsonrpc\ParameterFactory\PaginationParameterFactory;

/**
 * Reads a site file in JSON into the form in which Site has the exported one.
 *
 * Beside that, each method has its usage, access, headers and the definitions
 * of its parameters, which exported methods have in their classes.
 */
final class SiteFile {

  private const FACTORIES = [
    'entity' => EntityParameterFactory::class,
    'pagination' => PaginationParameterFactory::class,
  ];

  /**
   * Reads a site file.
   *
   * @throws \Drupal\bridgecheck_fixtures\Control\ControlException
   *   When it is no site file in JSON.
   */
  public static function read(string $text): array {
    $file = json_decode($text, TRUE);
    $parts = is_array($file) ? (JsonText::parts($text) ?? []) : [];
    if (!isset($file['title'])) {
      throw ControlException::bad('the body is no site file in JSON');
    }
    $site = [
      'title' => $file['title'],
      'extensions' => ($file['extensions'] ?? '') !== 'none',
      'permissions' => $file['permissions'] ?? [],
      'roles' => $file['roles'] ?? [],
      'users' => array_map(self::user(...), $file['users'] ?? []),
      'content' => $file['content'] ?? [],
      'methods' => array_map(self::method(...), JsonText::parts($parts['methods'] ?? '[]') ?? []),
    ];
    foreach ([...array_values($site['roles']), ...array_column($site['methods'], 'access')] as $permissions) {
      $site['permissions'] = [...$site['permissions'], ...$permissions];
    }
    $site['permissions'] = array_values(array_unique($site['permissions']));
    return $site;
  }

  /**
   * Reads an account. Drupal's tokens are made by its own authorization server.
   */
  private static function user(array $user): array {
    unset($user['tokens']);
    return $user + ['password' => '', 'roles' => [], 'blocked' => FALSE];
  }

  /**
   * Reads a method.
   */
  private static function method(string $text): array {
    $method = json_decode($text, TRUE);
    $parts = JsonText::parts($text) ?? [];
    $takesNone = array_key_exists('params', $method) && $method['params'] === NULL;
    $params = $method['params'] ?? [];
    $data = [
      'id' => $method['id'],
      'text' => $text,
      'module' => $method['module'] ?? '',
      'params' => array_map(strval(...), array_keys($params)),
      'behaviour' => self::behaviour($parts['behaviour']),
      'usage' => $method['usage'] ?? '',
      'access' => $method['access'] ?? [],
      'output' => $method['output'] ?? NULL,
      'headers' => $method['headers'] ?? [],
      'definitions' => $takesNone ? NULL : array_map(self::parameter(...), $params),
    ];
    if (isset($parts['mcp'])) {
      $data['mcpTool'] = JsonText::normalize($parts['mcp']);
    }
    return $data;
  }

  /**
   * Reads a parameter: exactly one of schema and factory is there.
   */
  private static function parameter(array $parameter): array {
    if (isset($parameter['schema']) && !is_array($parameter['schema'])) {
      throw ControlException::unable('PHP has no place for a schema that is no object');
    }
    $default = array_intersect_key($parameter, ['default' => 1]);
    $schema = isset($parameter['schema']) ? $parameter['schema'] + $default : NULL;
    if (isset($parameter['drupal'])) {
      $settings = ($parameter['settings'] ?? []) + (isset($parameter['target']) ? ['target_type' => $parameter['target']] : []);
      $schema = ['type' => $parameter['drupal']]
        + ($settings ? ['settings' => $settings] : [])
        + ['cardinality' => $parameter['cardinality'] ?? 1]
        + (empty($parameter['required']) ? [] : ['required' => TRUE])
        + $default;
    }
    return [
      'schema' => $schema,
      'factory' => isset($parameter['factory']) ? (self::FACTORIES[$parameter['factory']] ?? $parameter['factory']) : NULL,
      'description' => $parameter['description'] ?? NULL,
      'required' => !empty($parameter['required']),
    ];
  }

  /**
   * Reads a behaviour: a word, or a mapping whose first key names it.
   */
  private static function behaviour(string $text): array {
    $file = json_decode($text, TRUE);
    if (is_string($file)) {
      return ['kind' => $file];
    }
    $parts = JsonText::parts($text) ?? [];
    $does = array_intersect_key($file, array_flip(['match', 'by', 'page', 'field', 'fields', 'class']));
    if (isset($file['sleep'])) {
      $does['sleep'] = self::milliseconds($file['sleep']);
      unset($file['sleep']);
    }
    $kind = (string) array_key_first($file);
    $first = $file[$kind];
    $does['kind'] = $kind;
    switch ($kind) {
      case 'then':
        $does['kind'] = $first;
        break;

      case 'value':
        $does['value'] = JsonText::normalize($parts['value']);
        break;

      case 'fail':
        $error = JsonText::parts($parts['fail']) ?? [];
        $does['error'] = ['code' => $first['code'], 'message' => $first['message'] ?? '']
          + (isset($error['data']) ? ['data' => JsonText::normalize($error['data'])] : []);
        break;

      case 'runs':
        $does['method'] = $first;
        break;

      case 'list':
        $does['list'] = $first;
        break;

      case 'get':
        $does += ['list' => $first, 'text' => $file['missing'] ?? ''];
        break;

      case 'entity':
        $does['by'] = $first;
        break;

      case 'pick':
        $does['fields'] = $first;
        if (isset($parts['with'])) {
          $does['value'] = JsonText::normalize($parts['with']);
        }
        break;

      default:
        $does['text'] = (string) $first;
    }
    return $does;
  }

  /**
   * The milliseconds of a duration like 1m0.2s or 200ms.
   */
  private static function milliseconds(string $duration): int {
    preg_match_all('/([\d.]+)(h|ms|m|s)/', $duration, $parts, PREG_SET_ORDER);
    $units = ['h' => 3_600_000, 'm' => 60_000, 's' => 1000, 'ms' => 1];
    return (int) array_sum(array_map(fn (array $part): float => (float) $part[1] * $units[$part[2]], $parts));
  }

}
