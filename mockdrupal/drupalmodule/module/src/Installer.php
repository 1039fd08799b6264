<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\bridgecheck_fixtures\Control\State;
use Drupal\Core\Config\ConfigFactoryInterface;
use Drupal\Core\Entity\ContentEntityTypeInterface;
use Drupal\Core\Entity\EntityTypeInterface;
use Drupal\Core\Entity\EntityTypeManagerInterface;
use Drupal\Core\KeyValueStore\KeyValueFactoryInterface;
use Drupal\user\RoleInterface;

/**
 * Creates the roles, accounts and entities of the site file, and removes them.
 *
 * It notes what it creates and what was there before it, so that nothing of it
 * is left behind and nothing else is touched.
 */
final class Installer {

  private const COLLECTION = 'bridgecheck_fixtures';

  public function __construct(
    private readonly Site $site,
    private readonly EntityTypeManagerInterface $entityTypeManager,
    private readonly KeyValueFactoryInterface $keyValue,
    private readonly ConfigFactoryInterface $configFactory,
  ) {}

  /**
   * Creates all.
   */
  public function install(): void {
    // The title of error pages and the realm of Basic authentication.
    $config = $this->configFactory->getEditable('system.site');
    $this->note('site', 'name', $config->get('name'));
    $config->set('name', $this->site->title())->save();
    foreach ($this->site->roles() as $id => $permissions) {
      $this->role((string) $id, $permissions);
    }
    foreach ($this->site->users() as $user) {
      $this->account($user);
    }
    // Configuration goes first: it has the bundles of the content.
    $content = $this->site->content();
    uksort($content, fn (string $a, string $b): int => $this->isContent($a) <=> $this->isContent($b));
    foreach ($content as $type => $items) {
      if ($this->entityTypeManager->hasDefinition($type)) {
        foreach ($items as $item) {
          $this->entity($this->entityTypeManager->getDefinition($type), $item);
        }
      }
    }
  }

  /**
   * Makes roles and accounts those of another site file.
   *
   * @param array $before
   *   The accounts of the one before.
   */
  public function replace(array $before): void {
    $this->configFactory->getEditable('system.site')->set('name', $this->site->title())->save();
    $roles = $this->site->roles();
    $users = array_column($this->site->users(), NULL, 'uid');
    $store = $this->keyValue->get(self::COLLECTION);
    $kept = [];
    foreach ($store->get('created', []) as [$type, $id]) {
      if ($type === 'user_role' && !isset($roles[$id]) || $type === 'user' && !isset($users[$id])) {
        $this->entityTypeManager->getStorage($type)->load($id)?->delete();
        continue;
      }
      $kept[] = [$type, $id];
    }
    $store->set('created', $kept);
    foreach ($roles + array_fill_keys(array_keys($store->get('roles', [])), []) as $id => $permissions) {
      $this->role((string) $id, $permissions);
    }
    $before = array_column($before, NULL, 'uid');
    foreach ($users as $uid => $user) {
      if (($before[$uid] ?? NULL) != $user) {
        $this->account($user);
      }
    }
  }

  /**
   * Removes all, and puts back what was there before.
   */
  public function uninstall(): void {
    $store = $this->keyValue->get(self::COLLECTION);
    foreach (array_reverse($store->get('created', [])) as [$type, $id]) {
      if ($this->entityTypeManager->hasDefinition($type)) {
        $this->entityTypeManager->getStorage($type)->load($id)?->delete();
      }
    }
    foreach ($store->get('roles', []) as $id => $permissions) {
      $role = $this->entityTypeManager->getStorage('user_role')->load($id);
      if ($role instanceof RoleInterface) {
        $this->permit($role, $permissions);
      }
    }
    foreach ($store->get('accounts', []) as $uid => $was) {
      $account = $this->entityTypeManager->getStorage('user')->load($uid);
      $account?->setUsername($was['name'])
        ->set('pass', ['value' => $was['pass'], 'pre_hashed' => TRUE])
        ->set('status', $was['status'])
        ->set('roles', $was['roles'])
        ->save();
    }
    foreach ($store->get('site', []) as $key => $was) {
      $this->configFactory->getEditable('system.site')->set($key, $was)->save();
    }
    $store->deleteAll();
    $this->keyValue->get(State::COLLECTION)->deleteAll();
  }

  /**
   * Creates a role, or changes the permissions of one that is there.
   */
  private function role(string $id, array $permissions): void {
    $storage = $this->entityTypeManager->getStorage('user_role');
    $role = $storage->load($id);
    if ($role instanceof RoleInterface && !$this->isCreated('user_role', $id)) {
      $this->note('roles', $id, $role->getPermissions());
    }
    if (!$role instanceof RoleInterface) {
      $role = $storage->create(['id' => $id, 'label' => $id]);
      $role->save();
      $this->created('user_role', $id);
    }
    $this->permit($role, $permissions);
  }

  /**
   * Gives a role these permissions and no others.
   */
  private function permit(RoleInterface $role, array $permissions): void {
    foreach (array_diff($role->getPermissions(), $permissions) as $permission) {
      $role->revokePermission($permission);
    }
    foreach ($permissions as $permission) {
      $role->grantPermission($permission);
    }
    $role->save();
  }

  /**
   * Creates an account, or takes over one that is there: the first one always.
   */
  private function account(array $user): void {
    $storage = $this->entityTypeManager->getStorage('user');
    $account = $storage->load($user['uid']);
    if ($account) {
      if (!$this->isCreated('user', (string) $user['uid'])) {
        $this->note('accounts', (string) $user['uid'], [
          'name' => $account->getAccountName(),
          'pass' => $account->getPassword(),
          'status' => $account->isActive(),
          'roles' => $account->getRoles(TRUE),
        ]);
      }
      $account->setUsername($user['name'])
        ->setPassword($user['password'])
        ->set('roles', $user['roles'])
        ->set('status', !$user['blocked'])
        ->save();
      return;
    }
    $storage->create([
      'uid' => $user['uid'],
      'name' => $user['name'],
      'pass' => $user['password'],
      'mail' => 'user' . $user['uid'] . '@example.com',
      'status' => !$user['blocked'],
      'roles' => $user['roles'],
    ])->save();
    $this->created('user', (string) $user['uid']);
  }

  /**
   * Creates an entity that parameters can refer to, unless it is there.
   */
  private function entity(EntityTypeInterface $type, array $item): void {
    $storage = $this->entityTypeManager->getStorage($type->id());
    $id = $item['id'] ?? NULL;
    if ($id === NULL || $storage->load($id)) {
      return;
    }
    $values = [$type->getKey('id') => $id];
    foreach (['label', 'uuid'] as $key) {
      if ($type->hasKey($key) && isset($item[$key])) {
        $values[$type->getKey($key)] = $item[$key];
      }
    }
    $bundles = $type->getBundleEntityType();
    if ($bundles) {
      $values[$type->getKey('bundle')] = $item['bundle'] ?? (string) key($this->entityTypeManager->getStorage($bundles)->loadMultiple());
    }
    $storage->create($values)->save();
    $this->created($type->id(), (string) $id);
  }

  /**
   * Whether the entities of a type are content, not configuration.
   */
  private function isContent(string $type): bool {
    return $this->entityTypeManager->getDefinition($type, FALSE) instanceof ContentEntityTypeInterface;
  }

  /**
   * Whether an entity was created here.
   */
  private function isCreated(string $type, string $id): bool {
    return in_array([$type, $id], $this->keyValue->get(self::COLLECTION)->get('created', []), TRUE);
  }

  /**
   * Notes an entity that was created.
   */
  private function created(string $type, string $id): void {
    $store = $this->keyValue->get(self::COLLECTION);
    $store->set('created', [...$store->get('created', []), [$type, $id]]);
  }

  /**
   * Notes what was there before.
   */
  private function note(string $what, string $id, mixed $was): void {
    $store = $this->keyValue->get(self::COLLECTION);
    $store->set($what, $store->get($what, []) + [$id => $was]);
  }

}
