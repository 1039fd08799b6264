<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\bridgecheck_fixtures\Control\State;

/**
 * The site file: the exported one, or what the control plane has.
 */
final class Site {

  /**
   * The decoded file.
   */
  private ?array $data = NULL;

  /**
   * The methods, by id.
   */
  private ?array $methods = NULL;

  public function __construct(
    private readonly State $state,
  ) {}

  /**
   * Forgets what was read.
   */
  public function reset(): void {
    $this->data = NULL;
    $this->methods = NULL;
  }

  /**
   * The methods, in the file's order.
   */
  public function methods(): array {
    return $this->data()['methods'];
  }

  /**
   * A method of the site file.
   *
   * @return array{id: string, params: list<string>, behaviour: array, mcpTool?: string}
   *   The method.
   *
   * @throws \InvalidArgumentException
   *   When there is none of this id.
   */
  public function method(string $id): array {
    $this->methods ??= array_column($this->data()['methods'], NULL, 'id');
    return $this->methods[$id] ?? throw new \InvalidArgumentException("The site file has no method '$id'.");
  }

  /**
   * Whether the site file has a method of this id.
   */
  public function hasMethod(string $id): bool {
    $this->methods ??= array_column($this->data()['methods'], NULL, 'id');
    return isset($this->methods[$id]);
  }

  /**
   * The ids of the methods, in the file's order.
   *
   * @return list<string>
   *   The ids.
   */
  public function ids(): array {
    return array_column($this->data()['methods'], 'id');
  }

  /**
   * The site file itself, in JSON.
   */
  public function file(): string {
    return $this->state->file() ?? $this->exported();
  }

  /**
   * The site file that was exported, in JSON.
   */
  public function exported(): string {
    return (string) file_get_contents(dirname(__DIR__) . '/bridgecheck_fixtures.site-file.yml');
  }

  /**
   * The items of a content list; none where there is no such list.
   *
   * @return list<array>
   *   The items.
   */
  public function items(string $list): array {
    return $this->data()['content'][$list] ?? [];
  }

  /**
   * The content lists, by name.
   */
  public function content(): array {
    return $this->data()['content'];
  }

  /**
   * The permissions that methods and roles name.
   *
   * @return list<string>
   *   The permissions.
   */
  public function permissions(): array {
    return $this->data()['permissions'];
  }

  /**
   * The permissions of each role, by the role's id.
   *
   * @return array<string, list<string>>
   *   The roles.
   */
  public function roles(): array {
    return $this->data()['roles'];
  }

  /**
   * The accounts.
   *
   * @return list<array{uid: int, name: string, password: string, roles: list<string>, blocked: bool}>
   *   The accounts.
   */
  public function users(): array {
    return $this->data()['users'];
  }

  /**
   * The name of the site.
   */
  public function title(): string {
    return $this->data()['title'];
  }

  /**
   * Whether /jsonrpc/methods shows which methods are tools.
   */
  public function hasExtensions(): bool {
    return $this->data()['extensions'];
  }

  /**
   * Reads the file, once.
   */
  private function data(): array {
    $this->data ??= $this->state->site();
    if ($this->data === NULL) {
      $file = dirname(__DIR__) . '/bridgecheck_fixtures.data.yml';
      $this->data = json_decode((string) file_get_contents($file), TRUE, 512, JSON_THROW_ON_ERROR);
    }
    return $this->data;
  }

}
