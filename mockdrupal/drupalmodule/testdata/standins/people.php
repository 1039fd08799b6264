<?php

/**
 * @file
 * Stand-ins for roles and accounts: at first those of Drupal's standard profile.
 */

declare(strict_types=1);

use Drupal\Core\Entity\EntityTypeManagerInterface;
use Drupal\bridgecheck_fixtures\Site;
use Drupal\user\PermissionHandlerInterface;
use Drupal\user\RoleInterface;
use Drupal\user\UserInterface;

/**
 * Roles and accounts. What is loaded is a copy until it is saved.
 */
final class People implements EntityTypeManagerInterface, PermissionHandlerInterface {

  public array $entities = ['user_role' => [], 'user' => []];

  public function __construct(private readonly Site $site) {
    foreach (['anonymous', 'authenticated'] as $id) {
      (new Role($this, ['id' => $id, 'permissions' => ['access comments']]))->save();
    }
    (new User($this, ['uid' => 1, 'name' => 'root', 'pass' => 'secret', 'status' => TRUE, 'roles' => ['administrator']]))->save();
  }

  /**
   * What the entities hold.
   */
  public function values(): array {
    return array_map(fn (array $entities): array => array_map(fn (Person $person): array => $person->values(), $entities), $this->entities);
  }

  public function hasDefinition(string $type): bool {
    return isset($this->entities[$type]);
  }

  public function getDefinition(string $type): mixed {
    return NULL;
  }

  public function getStorage(string $type): Storage {
    return new Storage($this, $type);
  }

  public function getPermissions(): array {
    return array_flip($this->site->permissions());
  }

}

/**
 * The entities of a type.
 */
final class Storage {

  public function __construct(private readonly People $people, private readonly string $type) {}

  public function load(string|int $id): ?Person {
    $found = $this->people->entities[$this->type][$id] ?? NULL;
    return $found ? clone $found : NULL;
  }

  public function loadByProperties(array $properties): array {
    return array_filter($this->people->entities['user'], fn (User $user): bool => $user->getAccountName() === $properties['name']);
  }

  public function create(array $values): Person {
    return $this->type === 'user' ? new User($this->people, $values) : new Role($this->people, $values);
  }

}

/**
 * A role or an account.
 */
abstract class Person {

  protected const TYPE = '';
  protected const ID = '';

  public function __construct(protected readonly People $people, protected array $values) {}

  public function id(): string|int {
    return $this->values[static::ID];
  }

  public function values(): array {
    return $this->values;
  }

  public function set(string $field, mixed $value): static {
    $this->values[$field] = $field === 'pass' && is_array($value) ? $value['value'] : $value;
    return $this;
  }

  public function save(): void {
    $this->people->entities[static::TYPE][$this->id()] = $this;
  }

  public function delete(): void {
    unset($this->people->entities[static::TYPE][$this->id()]);
  }

}

/**
 * A role.
 */
final class Role extends Person implements RoleInterface {

  protected const TYPE = 'user_role';
  protected const ID = 'id';

  public function label(): string {
    return $this->values['label'];
  }

  public function getPermissions(): array {
    return $this->values['permissions'] ?? [];
  }

  public function grantPermission(string $permission): static {
    return $this->set('permissions', array_values(array_unique([...$this->getPermissions(), $permission])));
  }

  public function revokePermission(string $permission): static {
    return $this->set('permissions', array_diff($this->getPermissions(), [$permission]));
  }

}

/**
 * An account.
 */
final class User extends Person implements UserInterface {

  protected const TYPE = 'user';
  protected const ID = 'uid';

  public function label(): string {
    return $this->values['name'];
  }

  public function getAccountName(): string {
    return $this->values['name'];
  }

  public function getPassword(): string {
    return $this->values['pass'];
  }

  public function isActive(): bool {
    return $this->values['status'];
  }

  public function isBlocked(): bool {
    return !$this->values['status'];
  }

  public function getRoles(bool $exclude_locked_roles = FALSE): array {
    return $this->values['roles'] ?? [];
  }

  public function setUsername(string $name): static {
    return $this->set('name', $name);
  }

  public function setPassword(string $password): static {
    return $this->set('pass', $password);
  }

  public function block(): static {
    return $this->set('status', FALSE);
  }

  public function activate(): static {
    return $this->set('status', TRUE);
  }

}
