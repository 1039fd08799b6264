<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\bridgecheck_fixtures\Control\State;
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
    private readonly State $state,
  ) {}

  /**
   * Whether they are shown.
   */
  public function areShown(): bool {
    return $this->state->extensions() ?? $this->site->hasExtensions();
  }

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
    $tool = $this->tool($id);
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

  /**
   * What is shown of a method's McpTool attribute; NULL where it has none.
   */
  private function tool(string $id): ?string {
    $tool = $this->site->method($id)['mcpTool'] ?? NULL;
    $change = $this->state->methods()[$id] ?? [];
    if (($change['exposed'] ?? NULL) === FALSE) {
      return NULL;
    }
    if (isset($change['title'])) {
      $parts = JsonText::parts($tool ?? '{}') ?? [];
      $annotations = isset($parts['annotations']) ? ',"annotations":' . $parts['annotations'] : '';
      return '{"title":' . Json::encode($change['title']) . $annotations . '}';
    }
    return $tool ?? (empty($change['exposed']) ? NULL : '{}');
  }

}
