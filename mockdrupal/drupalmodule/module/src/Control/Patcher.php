<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\bridgecheck_fixtures\JsonText;
use Drupal\bridgecheck_fixtures\Site;
use Drupal\Component\Serialization\Json;
use Drupal\Core\Entity\EntityTypeManagerInterface;
use Drupal\user\PermissionHandlerInterface;
use Drupal\user\RoleInterface;
use Drupal\user\UserInterface;

/**
 * Changes the site as the mock's control plane changes the mock.
 *
 * A patch is checked as a whole before anything of it is done.
 */
final class Patcher {

  public function __construct(
    private readonly Site $site,
    private readonly State $state,
    private readonly EntityTypeManagerInterface $entityTypeManager,
    private readonly PermissionHandlerInterface $permissions,
  ) {}

  /**
   * Applies a patch.
   *
   * @throws \Drupal\bridgecheck_fixtures\Control\ControlException
   *   When it names what the site does not have; nothing is changed then.
   */
  public function apply(array $patch): void {
    $was = $this->state->disabled();
    $enabled = array_values(array_diff($this->site->ids(), $was));
    $disabled = [...$was, ...$this->select($patch['disable'] ?? [], $enabled, 'disable', 'is on the site')];
    $disabled = array_values(array_diff($disabled, $this->select($patch['enable'] ?? [], $disabled, 'enable', 'was disabled')));
    $methods = $this->state->methods();
    foreach ($patch['methods'] ?? [] as $id => $change) {
      $id = (string) $id;
      if (!$this->site->hasMethod($id) || in_array($id, $disabled, TRUE)) {
        throw ControlException::bad("methods: the site has no method \"$id\"");
      }
      $methods[$id] = self::join($methods[$id] ?? [], $this->checked($id, $change));
    }
    $roles = array_map($this->role(...), array_keys($patch['roles'] ?? []), $patch['roles'] ?? []);
    $users = array_map($this->user(...), array_keys($patch['users'] ?? []), $patch['users'] ?? []);
    // All is right: change it.
    $this->state->set('disabled', $disabled);
    $this->state->set('methods', $methods);
    if (isset($patch['extensions'])) {
      $this->state->set('extensions', (bool) $patch['extensions']);
    }
    foreach ([...$roles, ...$users] as $entity) {
      $entity->save();
    }
  }

  /**
   * The site file, as the site is now.
   */
  public function siteFile(): string {
    $parts = JsonText::parts($this->site->file()) ?? [];
    $disabled = $this->state->disabled();
    $changes = $this->state->methods();
    $methods = [];
    foreach (JsonText::parts($parts['methods'] ?? '[]') ?? [] as $text) {
      $id = json_decode(JsonText::parts($text)['id']);
      if (!in_array($id, $disabled, TRUE)) {
        $methods[] = isset($changes[$id]) ? self::changedText($text, $changes[$id]) : $text;
      }
    }
    if (isset($parts['methods'])) {
      $parts['methods'] = '[' . implode(',', $methods) . ']';
    }
    $parts['roles'] = Json::encode((object) $this->rolesNow());
    $users = array_map($this->userNow(...), json_decode($parts['users'] ?? '[]', TRUE));
    $parts['users'] = Json::encode($users);
    if ($this->state->extensions() !== NULL) {
      $parts['extensions'] = '"none"';
      if ($this->state->extensions()) {
        unset($parts['extensions']);
      }
    }
    $members = [];
    foreach ($parts as $name => $text) {
      $members[] = Json::encode($name) . ':' . $text;
    }
    return '{' . implode(',', $members) . '}';
  }

  /**
   * The methods that a selection selects.
   *
   * @return list<string>
   *   Their ids.
   */
  private function select(array $selection, array $ids, string $what, string $where): array {
    self::checkMembers($selection, ['methods', 'modules'], $what);
    $selected = [];
    foreach ($selection['methods'] ?? [] as $pattern) {
      $found = array_filter($ids, fn (string $id): bool => Pattern::matches($pattern, $id));
      if (!$found) {
        throw ControlException::bad("$what.methods: no method that $where matches \"$pattern\"");
      }
      $selected = [...$selected, ...array_values($found)];
    }
    foreach ($selection['modules'] ?? [] as $module) {
      $found = array_filter($ids, fn (string $id): bool => ($this->site->method($id)['module'] ?? '') === $module);
      if ($module === '' || !$found) {
        throw ControlException::bad("$what.modules: no method that $where belongs to the module \"$module\"");
      }
      $selected = [...$selected, ...array_values($found)];
    }
    return array_values(array_unique($selected));
  }

  /**
   * A change of a method, once it is known to be possible.
   */
  private function checked(string $id, array $change): array {
    self::checkMembers($change, ['usage', 'access', 'schemas', 'output', 'title', 'exposed'], "methods.$id");
    foreach ($change['schemas'] ?? [] as $name => $schema) {
      if (!in_array((string) $name, $this->site->method($id)['params'], TRUE)) {
        throw ControlException::bad("methods.$id: schemas: the method has no parameter \"$name\"");
      }
      if (!is_array($schema) || !$schema) {
        throw ControlException::bad("methods.$id: schemas: the jsonrpc module takes no empty schema for \"$name\"");
      }
    }
    foreach ($change['access'] ?? [] as $permission) {
      $this->checkPermission($permission, "methods.$id");
    }
    return $change;
  }

  /**
   * Two changes as one.
   */
  private static function join(array $first, array $second): array {
    $schemas = ($second['schemas'] ?? []) + ($first['schemas'] ?? []);
    return ($schemas ? ['schemas' => $schemas] : []) + $second + $first;
  }

  /**
   * A role as a patch wants it, not yet saved.
   */
  private function role(string $id, array $change): RoleInterface {
    $role = $this->entityTypeManager->getStorage('user_role')->load($id);
    if (!$role instanceof RoleInterface) {
      throw ControlException::bad("roles: the site has no role \"$id\"");
    }
    self::checkMembers($change, ['grant', 'revoke'], "roles.$id");
    foreach ($change['grant'] ?? [] as $permission) {
      $this->checkPermission($permission, "roles.$id");
      $role->grantPermission($permission);
    }
    foreach ($change['revoke'] ?? [] as $permission) {
      $role->revokePermission($permission);
    }
    return $role;
  }

  /**
   * An account as a patch wants it, not yet saved.
   */
  private function user(string $name, array $change): UserInterface {
    $account = $this->load($name);
    if (!$account) {
      throw ControlException::bad("users: the site has no account \"$name\"");
    }
    self::checkMembers($change, ['password', 'roles', 'blocked'], "users.$name");
    foreach ($change['roles'] ?? [] as $role) {
      if (!$this->entityTypeManager->getStorage('user_role')->load($role)) {
        throw ControlException::bad("users.$name: roles: the site has no role \"$role\"");
      }
    }
    if (isset($change['roles'])) {
      $account->set('roles', $change['roles']);
    }
    if (isset($change['password'])) {
      $account->setPassword($change['password']);
    }
    if (isset($change['blocked'])) {
      $change['blocked'] ? $account->block() : $account->activate();
    }
    return $account;
  }

  /**
   * The account of this name; NULL where there is none.
   */
  private function load(string $name): ?UserInterface {
    $accounts = $this->entityTypeManager->getStorage('user')->loadByProperties(['name' => $name]);
    return $accounts ? reset($accounts) : NULL;
  }

  /**
   * Refuses a part of a patch that has other members than these.
   */
  public static function checkMembers(array $part, array $members, string $where): void {
    foreach (array_keys($part) as $name) {
      if (!in_array($name, $members, TRUE)) {
        throw ControlException::bad("$where: unknown field \"$name\"");
      }
    }
  }

  /**
   * Refuses a permission that no module defines.
   */
  private function checkPermission(string $permission, string $where): void {
    if (!isset($this->permissions->getPermissions()[$permission])) {
      throw ControlException::bad("$where: no permission is called \"$permission\"");
    }
  }

  /**
   * The permissions of the site's roles.
   */
  private function rolesNow(): array {
    $roles = [];
    foreach (array_keys($this->site->roles()) as $id) {
      $role = $this->entityTypeManager->getStorage('user_role')->load($id);
      $roles[$id] = $role instanceof RoleInterface ? array_values($role->getPermissions()) : [];
    }
    return $roles;
  }

  /**
   * An account of the site file, as it is now.
   */
  private function userNow(array $user): array {
    $account = $this->load($user['name']);
    if ($account) {
      $user['roles'] = array_values(array_diff($account->getRoles(TRUE), ['authenticated']));
      $user['blocked'] = $account->isBlocked();
    }
    // Drupal's tokens are made by its own authorization server.
    unset($user['tokens']);
    return $user;
  }

  /**
   * The text of a method, changed.
   */
  private static function changedText(string $text, array $change): string {
    $method = json_decode($text);
    foreach (['usage', 'access', 'output'] as $name) {
      if (isset($change[$name])) {
        $method->{$name} = $change[$name];
      }
    }
    foreach ($change['schemas'] ?? [] as $name => $schema) {
      $parameter = is_array($method->params) ? $method->params[$name] : $method->params->{$name};
      foreach (['factory', 'drupal', 'target', 'cardinality', 'settings'] as $other) {
        unset($parameter->{$other});
      }
      $parameter->schema = $schema;
    }
    if (($change['exposed'] ?? NULL) === FALSE) {
      unset($method->mcp);
    }
    elseif (isset($change['exposed']) || isset($change['title'])) {
      $method->mcp ??= new \stdClass();
      if (isset($change['title'])) {
        $method->mcp->title = $change['title'];
      }
    }
    return json_encode($method, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION | JSON_UNESCAPED_SLASHES);
  }

}
