<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\EventSubscriber;

use Drupal\bridgecheck_fixtures\Control\Calls;
use Drupal\bridgecheck_fixtures\Control\Journal;
use Drupal\bridgecheck_fixtures\ExactJson;
use Drupal\bridgecheck_fixtures\Extensions;
use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Session\AccountInterface;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\KernelEvents;

/**
 * Puts exact JSON into the jsonrpc module's responses, and keeps the journal.
 */
final class ResponseSubscriber implements EventSubscriberInterface {

  public function __construct(
    private readonly Extensions $extensions,
    private readonly ExactJson $json,
    private readonly AccountInterface $currentUser,
    private readonly Journal $journal,
    private readonly Calls $calls,
  ) {}

  /**
   * {@inheritdoc}
   */
  public static function getSubscribedEvents(): array {
    // Before the dynamic page cache, which has 100.
    return [KernelEvents::RESPONSE => ['onResponse', 150]];
  }

  /**
   * Changes the responses of the jsonrpc module's addresses.
   */
  public function onResponse(ResponseEvent $event): void {
    $request = $event->getRequest();
    $route = self::route($request->getPathInfo());
    if (!$event->isMainRequest() || $route === NULL) {
      return;
    }
    $response = $event->getResponse();
    if ($response instanceof CacheableResponseInterface) {
      // The control plane changes methods, and methods count their runs.
      $response->getCacheableMetadata()->setCacheMaxAge(0);
    }
    $body = (string) $response->getContent();
    // OPTIONS has a response without a document.
    if ($body !== '' && $response->isOk()) {
      $changed = $this->json->apply($body);
      if ($this->extensions->areShown()) {
        $changed = match ($route) {
          'methods' => $this->extensions->collection($changed, $this->currentUser->hasPermission('access mcp tool discovery')),
          'method' => $this->extensions->method($changed),
          default => $changed,
        };
      }
      if ($changed !== $body) {
        $response->setContent($changed);
      }
    }
    $this->journal->add($this->entry($request, $response, $route));
  }

  /**
   * The journal's name of an address; NULL for those of others.
   */
  private static function route(string $path): ?string {
    return match (TRUE) {
      $path === '/jsonrpc' => 'jsonrpc',
      $path === '/jsonrpc/methods' => 'methods',
      str_starts_with($path, '/jsonrpc/methods/') => 'method',
      default => NULL,
    };
  }

  /**
   * What the journal keeps of a request: no credentials.
   */
  private function entry(Request $request, Response $response, string $route): array {
    $calls = [];
    foreach ($route === 'jsonrpc' ? $this->json->calls($request) : [] as $call) {
      $outcome = $this->calls->take($call['method']);
      $calls[] = $call + ['ran' => $outcome !== NULL] + ($outcome ?? []);
    }
    $name = (string) $this->currentUser->getAccountName();
    $body = (string) $request->getContent();
    return [
      'start' => self::time((float) $request->server->get('REQUEST_TIME_FLOAT')),
      'end' => self::time(microtime(TRUE)),
      'user' => $name,
      'scheme' => match (TRUE) {
        $name === '' => '',
        $request->headers->has('PHP_AUTH_USER') => 'basic',
        $request->headers->has('Authorization') => 'bearer',
        default => 'cookie',
      },
      'conn' => 0,
      'http_method' => $request->getMethod(),
      'path' => $request->getPathInfo(),
      'query' => (string) $request->server->get('QUERY_STRING'),
      'route' => $route,
      'header' => [],
      'body' => base64_encode(substr($body, 0, 65536)),
      'body_bytes' => strlen($body),
      'calls' => $calls,
      'status' => $response->getStatusCode(),
      'bytes_out' => strlen((string) $response->getContent()),
      'bytes_taken' => 0,
      'fault' => '',
    ];
  }

  /**
   * A time as JSON has it.
   */
  private static function time(float $seconds): string {
    return \DateTimeImmutable::createFromFormat('U.u', sprintf('%.6F', $seconds))->format('Y-m-d\TH:i:s.u\Z');
  }

}
