<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\Core\KeyValueStore\KeyValueFactoryInterface;
use Drupal\Core\KeyValueStore\KeyValueStoreInterface;

/**
 * What the control plane has changed of the methods of the site file.
 */
final class State {

  public const COLLECTION = 'bridgecheck_fixtures_control';

  public function __construct(
    private readonly KeyValueFactoryInterface $keyValue,
  ) {}

  /**
   * The ids of the methods that are disabled.
   *
   * @return list<string>
   *   The ids.
   */
  public function disabled(): array {
    return $this->store()->get('disabled', []);
  }

  /**
   * The changes of each method, by id.
   *
   * @return array<string, array>
   *   The members usage, access, schemas, output, title and exposed.
   */
  public function methods(): array {
    return $this->store()->get('methods', []);
  }

  /**
   * Whether /jsonrpc/methods shows which methods are tools; NULL: unchanged.
   */
  public function extensions(): ?bool {
    return $this->store()->get('extensions');
  }

  /**
   * The pattern of the methods that wait to be stepped; NULL: none.
   */
  public function frozen(): ?string {
    return $this->store()->get('frozen');
  }

  /**
   * The site in place of the exported one, as SiteFile reads it; or NULL.
   */
  public function site(): ?array {
    return $this->store()->get('site');
  }

  /**
   * The site file in place of the exported one, in JSON; or NULL.
   */
  public function file(): ?string {
    return $this->store()->get('file');
  }

  /**
   * Puts another site file in place, or the exported one for NULL.
   */
  public function replace(?array $site, ?string $file): void {
    foreach (['disabled', 'methods', 'extensions'] as $patched) {
      $this->set($patched, NULL);
    }
    $this->set('site', $site);
    $this->set('file', $file);
  }

  /**
   * The number of the last journal entry that was forgotten on request.
   */
  public function cleared(): int {
    return $this->store()->get('cleared', 0);
  }

  /**
   * Keeps a change.
   *
   * @param 'disabled'|'methods'|'extensions'|'frozen'|'cleared' $what
   *   What has changed.
   * @param mixed $value
   *   What it is now.
   */
  public function set(string $what, mixed $value): void {
    $value === NULL ? $this->store()->delete($what) : $this->store()->set($what, $value);
  }

  /**
   * Where the changes are kept.
   */
  private function store(): KeyValueStoreInterface {
    return $this->keyValue->get(self::COLLECTION);
  }

}
