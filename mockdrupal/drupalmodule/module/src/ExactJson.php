<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Component\Serialization\Json;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\RequestStack;

/**
 * Carries JSON through PHP byte for byte: what came in, and what goes out.
 *
 * A result is given to the jsonrpc module as a PHP value, with which it does
 * what it does with any; where its JSON is not the one that is wanted, that one
 * replaces it in the response.
 */
final class ExactJson {

  /**
   * The arguments of the request's calls that were not taken, by method.
   *
   * @var array<string, list<string|null>>|null
   */
  private ?array $arguments = NULL;

  /**
   * The request that the arguments are of.
   */
  private ?Request $request = NULL;

  /**
   * What replaces what in the response, in the order of the calls.
   *
   * @var list<array{search: string, replace: string}>
   */
  private array $replacements = [];

  public function __construct(
    private readonly RequestStack $requests,
  ) {}

  /**
   * The arguments of the next call of a method, as they were sent.
   *
   * @return string|null
   *   The JSON text; NULL where none were sent.
   */
  public function takeArguments(string $method): ?string {
    $request = $this->requests->getCurrentRequest();
    if ($this->arguments === NULL || $request !== $this->request) {
      $this->request = $request;
      $this->arguments = $request ? $this->readArguments($request) : [];
    }
    return empty($this->arguments[$method]) ? NULL : array_shift($this->arguments[$method]);
  }

  /**
   * Announces that a member of a response shall have this JSON.
   *
   * @param string $member
   *   The member: result, or data of an error.
   * @param string $json
   *   The JSON that the response shall have there.
   *
   * @return mixed
   *   The value to give to the jsonrpc module.
   */
  public function announce(string $member, string $json): mixed {
    $value = json_decode($json, TRUE);
    $encoded = Json::encode($value);
    if ($encoded === FALSE) {
      // JSON has numbers that PHP cannot write: 1e400.
      $value = 'bridgecheck-' . bin2hex(random_bytes(16));
      $encoded = Json::encode($value);
    }
    if ($encoded !== $json) {
      $this->replacements[] = [
        'search' => '"' . $member . '":' . $encoded,
        'replace' => '"' . $member . '":' . $json,
      ];
    }
    return $value;
  }

  /**
   * Puts what was announced into the body of a response.
   */
  public function apply(string $body): string {
    $from = 0;
    foreach ($this->replacements as $r) {
      $at = strpos($body, $r['search'], $from);
      if ($at !== FALSE) {
        $body = substr_replace($body, $r['replace'], $at, strlen($r['search']));
        $from = $at + strlen($r['replace']);
      }
    }
    $this->replacements = [];
    return $body;
  }

  /**
   * The calls of a request, as the journal shows them.
   *
   * @return list<array{method: string, id?: string, params?: string, notification: bool}>
   *   The calls; id and params as they were sent.
   */
  public function calls(Request $request): array {
    $calls = [];
    foreach (self::split($request) as $parts) {
      $method = json_decode($parts['method'] ?? 'null');
      $calls[] = ['method' => is_string($method) ? $method : '']
        + array_intersect_key($parts, ['id' => 1, 'params' => 1])
        + ['notification' => !isset($parts['id'])];
    }
    return $calls;
  }

  /**
   * The members of each call of a request, as texts.
   */
  private static function split(Request $request): array {
    $text = $request->isMethod('POST') ? (string) $request->getContent() : self::query($request);
    $message = json_decode($text, TRUE);
    if (!is_array($message)) {
      return [];
    }
    $calls = isset($message['jsonrpc']) ? [$text] : (JsonText::parts($text) ?? []);
    return array_values(array_map(fn (string $call): array => JsonText::parts($call) ?? [], $calls));
  }

  /**
   * The argument query of a GET; '' where it is missing or no text.
   */
  private static function query(Request $request): string {
    $query = $request->query->all()['query'] ?? '';
    return is_string($query) ? $query : '';
  }

  /**
   * Reads the arguments of all calls of a request.
   */
  private function readArguments(Request $request): array {
    $arguments = [];
    foreach (self::split($request) as $parts) {
      $method = json_decode($parts['method'] ?? 'null');
      if (is_string($method)) {
        $arguments[$method][] = $parts['params'] ?? NULL;
      }
    }
    return $arguments;
  }

}
