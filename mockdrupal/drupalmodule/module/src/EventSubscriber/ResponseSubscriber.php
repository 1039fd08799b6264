<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\EventSubscriber;

use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Routing\RouteMatchInterface;
use Drupal\Core\Session\AccountInterface;
use Drupal\bridgecheck_fixtures\ExactJson;
use Drupal\bridgecheck_fixtures\Extensions;
use Drupal\bridgecheck_fixtures\Site;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\KernelEvents;

/**
 * Puts exact JSON into the responses of the jsonrpc module.
 */
final class ResponseSubscriber implements EventSubscriberInterface {

  public function __construct(
    private readonly Site $site,
    private readonly ExactJson $json,
    private readonly RouteMatchInterface $routeMatch,
    private readonly AccountInterface $currentUser,
  ) {}

  /**
   * {@inheritdoc}
   */
  public static function getSubscribedEvents(): array {
    // Before the dynamic page cache, which has 100.
    return [KernelEvents::RESPONSE => ['onResponse', 150]];
  }

  /**
   * Changes the responses of the jsonrpc module's routes.
   */
  public function onResponse(ResponseEvent $event): void {
    $route = (string) $this->routeMatch->getRouteName();
    if (!$event->isMainRequest() || !str_starts_with($route, 'jsonrpc')) {
      return;
    }
    $response = $event->getResponse();
    if ($response instanceof CacheableResponseInterface) {
      // The control plane changes methods, and methods count their runs.
      $response->getCacheableMetadata()->setCacheMaxAge(0);
    }
    $body = $response->getContent();
    if (!is_string($body) || !$response->isOk() && !$response->isClientError()) {
      return;
    }
    $body = $this->json->apply($body);
    if ($response->isOk() && $this->site->hasExtensions()) {
      $extensions = new Extensions($this->site);
      $body = match ($route) {
        'jsonrpc.method_collection' => $extensions->collection($body, $this->currentUser->hasPermission('access mcp tool discovery')),
        'jsonrpc.method_resource' => $extensions->method($body),
        default => $body,
      };
    }
    if ($body !== $response->getContent()) {
      $response->setContent($body);
    }
  }

}
