<?php

/**
 * @file
 * Prints what an exported module requires of a site, as JSON.
 *
 * Usage: php requirements.php MODULE SITE, where SITE is {"core": "10.6" or
 * "11.4", "settings": {…}, "accounts": N, "nodes": N or null}. Drupal calls the
 * hook before 11.2, and from then on the class, too.
 */

declare(strict_types=1);

namespace Drupal\Core\Site {

  final class Settings {
    public static array $all = [];

    public static function get(string $name, mixed $default): mixed {
      return self::$all[$name] ?? $default;
    }

  }
}

namespace Drupal\Core\StringTranslation {

  final class TranslatableMarkup implements \Stringable {

    public function __construct(private readonly string $text, private readonly array $arguments = []) {}

    public function __toString(): string {
      return strtr($this->text, $this->arguments);
    }

  }
}

namespace {

  use Drupal\bridgecheck_fixtures\Install\Requirements\BridgecheckFixturesRequirements;
  use Drupal\Core\Site\Settings;

  error_reporting(E_ALL);
  set_error_handler(function (int $severity, string $message, string $file, int $line): never {
    throw new \ErrorException($message, 0, $severity, $file, $line);
  });

  /**
   * Entity types, storages and queries that know one number of each type.
   */
  final class Drupal {
    public static array $counts = [];
    private string $type = '';

    public static function entityTypeManager(): self {
      return new self();
    }

    public function hasDefinition(string $type): bool {
      return isset(self::$counts[$type]);
    }

    public function getStorage(string $type): self {
      $this->type = $type;
      return $this;
    }

    public function execute(): string {
      return (string) self::$counts[$this->type];
    }

    public function __call(string $name, array $arguments): self {
      return $this;
    }

  }

  $argv = isset($_SERVER['ARGV_JSON']) ? [__FILE__, ...json_decode($_SERVER['ARGV_JSON'])] : $argv;
  [, $module, $site] = $argv;
  $site = json_decode($site, TRUE, 512, JSON_THROW_ON_ERROR);
  Settings::$all = $site['settings'];
  Drupal::$counts = ['user' => $site['accounts'], 'node' => $site['nodes']];
  $current = version_compare($site['core'], '11.2', '>=');
  if ($current) {
    eval('namespace Drupal\Core\Extension; interface InstallRequirementsInterface { public static function getRequirements(): array; }');
    eval('namespace Drupal\Core\Extension\Requirement; enum RequirementSeverity: int { case Error = 2; }');
    eval('namespace Drupal\Core\Hook\Attribute; #[\Attribute(\Attribute::TARGET_FUNCTION)] class LegacyRequirementsHook {}');
  }
  require $module . '/bridgecheck_fixtures.install';
  $hook = new \ReflectionFunction('bridgecheck_fixtures_requirements');
  $all = array_merge($hook->invoke('install'), $hook->invoke('runtime'));
  if ($current) {
    $hook->getAttributes()[0]->newInstance();
    require $module . '/src/Install/Requirements/BridgecheckFixturesRequirements.php';
    $all = array_merge($all, BridgecheckFixturesRequirements::getRequirements());
  }
  echo json_encode(array_map(static fn (array $r): array => [
    'description' => (string) $r['description'],
    'error' => $current ? $r['severity'] === \Drupal\Core\Extension\Requirement\RequirementSeverity::Error : $r['severity'] === 2,
  ], $all), JSON_FORCE_OBJECT | JSON_UNESCAPED_SLASHES), "\n";
}
