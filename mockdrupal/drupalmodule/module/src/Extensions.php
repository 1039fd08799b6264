<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Component\Serialization\Json;

/**
 * Shows in /jsonrpc/methods which methods are tools.
 *
 * The jsonrpc module does not show McpTool attributes; a bridge outside of
 * Drupal needs them.
 */
final class Extensions {

  public function __construct(
    private readonly Site $site,
  ) {}

  /**
   * Adds to the document of all methods.
   *
   * @param string $document
   *   The document.
   * @param bool $discovery
   *   Whether its reader may discover tools.
   */
  public function collection(string $document, bool $discovery): string {
    $parts = JsonText::parts($document) ?? [];
    $methods = array_map($this->method(...), JsonText::parts($parts['data'] ?? '[]') ?? []);
    return '{"data":[' . implode(',', $methods) . '],"links":' . ($parts['links'] ?? '{}')
      . ',"meta":{"mcp":{"discovery":' . ($discovery ? 'true' : 'false') . '}}}';
  }

  /**
   * Adds to the document of one method.
   */
  public function method(string $document): string {
    $parts = JsonText::parts($document) ?? [];
    $id = json_decode($parts['id'] ?? 'null');
    if (!is_string($id) || !isset($parts['attributes']) || !$this->site->hasMethod($id)) {
      return $document;
    }
    $tool = $this->site->method($id)['mcpTool'] ?? NULL;
    if ($tool === NULL) {
      return $document;
    }
    $members = [];
    foreach (JsonText::parts($parts['attributes']) ?? [] as $name => $value) {
      $members[] = Json::encode((string) $name) . ':' . $value;
    }
    $members[] = '"mcpTool":' . $tool;
    $parts['attributes'] = '{' . implode(',', $members) . '}';
    $all = [];
    foreach ($parts as $name => $value) {
      $all[] = Json::encode((string) $name) . ':' . $value;
    }
    return '{' . implode(',', $all) . '}';
  }

}
