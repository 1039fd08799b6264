<?php

/**
 * @file
 * Stand-ins for roles and accounts, as the site file has them.
 */

declare(strict_types=1);

use Drupal\Core\Entity\EntityTypeManagerInterface;
use Drupal\bridgecheck_fixtures\Site;
use Drupal\user\PermissionHandlerInterface;
use Drupal\user\RoleInterface;
use Drupal\user\UserInterface;

/**
 * The roles and accounts of a site. What is loaded is a copy until it is saved.
 */
final class People implements EntityTypeManagerInterface, PermissionHandlerInterface {

  public array $entities = ['user_role' => [], 'user' => []];

  public function __construct(private readonly Site $site) {
    foreach ($site->roles() as $id => $permissions) {
      $this->entities['user_role'][$id] = new Role($this, $id, $permissions);
    }
    foreach ($site->users() as $user) {
      $this->entities['user'][$user['name']] = new User($this, $user);
    }
  }

  public function getStorage(string $type): object {
    return new class($this->entities[$type]) {

      public function __construct(private readonly array $entities) {}

      public function load(string $id): ?object {
        return isset($this->entities[$id]) ? clone $this->entities[$id] : NULL;
      }

      public function loadByProperties(array $properties): array {
        return array_filter([$this->load($properties['name'])]);
      }

    };
  }

  public function getPermissions(): array {
    return array_flip($this->site->permissions());
  }

}

/**
 * A role.
 */
final class Role implements RoleInterface {

  public function __construct(private readonly People $people, private readonly string $id, private array $permissions) {}

  public function id(): string {
    return $this->id;
  }

  public function label(): string {
    return $this->id;
  }

  public function getPermissions(): array {
    return $this->permissions;
  }

  public function grantPermission(string $permission): static {
    $this->permissions = array_values(array_unique([...$this->permissions, $permission]));
    return $this;
  }

  public function revokePermission(string $permission): static {
    $this->permissions = array_diff($this->permissions, [$permission]);
    return $this;
  }

  public function save(): void {
    $this->people->entities['user_role'][$this->id] = $this;
  }

}

/**
 * An account.
 */
final class User implements UserInterface {

  public function __construct(private readonly People $people, private array $values) {}

  public function id(): int {
    return $this->values['uid'];
  }

  public function label(): string {
    return $this->values['name'];
  }

  public function set(string $field, mixed $value): static {
    $this->values[$field] = $value;
    return $this;
  }

  public function setPassword(string $password): static {
    return $this->set('password', $password);
  }

  public function block(): static {
    return $this->set('blocked', TRUE);
  }

  public function activate(): static {
    return $this->set('blocked', FALSE);
  }

  public function isBlocked(): bool {
    return $this->values['blocked'];
  }

  public function getRoles(bool $exclude_locked_roles = FALSE): array {
    return $this->values['roles'];
  }

  public function save(): void {
    $this->people->entities['user'][$this->values['name']] = $this;
  }

}
