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
   * The request's calls that did not run yet, by method.
   *
   * @var array<string, list<array{id?: string, params?: string, notification: bool}>>
   */
  private array $pending = [];

  /**
   * Whether the present call is a notification, whose result nobody receives.
   */
  private bool $isNotification = FALSE;

  /**
   * The request that the pending calls are of.
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
    if ($request !== $this->request) {
      $this->request = $request;
      $this->pending = [];
      foreach ($request ? $this->calls($request) : [] as $call) {
        $this->pending[$call['method']][] = $call;
      }
    }
    $call = empty($this->pending[$method]) ? NULL : array_shift($this->pending[$method]);
    $this->isNotification = $call['notification'] ?? FALSE;
    return $call['params'] ?? NULL;
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
    // The error of a notification is sent.
    if ($encoded !== $json && !($this->isNotification && $member === 'result')) {
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

}
