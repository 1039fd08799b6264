<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

use Drupal\Core\Site\Settings;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\HttpKernelInterface;

/**
 * Serves the control plane below /-/mock/, to who has its token.
 *
 * It comes before Drupal's authentication, whose providers would refuse a
 * bearer token that is not theirs. Without a token in the environment the
 * control plane is not there.
 */
final class ControlMiddleware implements HttpKernelInterface {

  public const PREFIX = '/-/mock/';

  public function __construct(
    private readonly HttpKernelInterface $httpKernel,
    private readonly \Closure $plane,
  ) {}

  /**
   * {@inheritdoc}
   */
  public function handle(Request $request, int $type = self::MAIN_REQUEST, bool $catch = TRUE): Response {
    $token = (string) getenv('BRIDGECHECK_CONTROL_TOKEN');
    $path = $request->getPathInfo();
    if ($token === '' || !Settings::get('bridgecheck_fixtures', FALSE) || $type !== self::MAIN_REQUEST || !str_starts_with($path, self::PREFIX)) {
      return $this->httpKernel->handle($request, $type, $catch);
    }
    $sent = (string) preg_replace('/^Bearer /', '', (string) $request->headers->get('Authorization'));
    if (!hash_equals($token, $sent)) {
      return new JsonResponse(['error' => 'the control plane needs its token: Authorization: Bearer TOKEN'], 401, [
        'WWW-Authenticate' => 'Bearer realm="mock control"',
      ]);
    }
    if ($request->headers->get('Origin') !== NULL) {
      return new JsonResponse(['error' => 'the control plane serves no web page'], 403);
    }
    try {
      $result = ($this->plane)()->handle($request->getMethod(), substr($path, strlen(self::PREFIX)), $request->query->all(), $request->getContent());
    }
    catch (ControlException $e) {
      return new JsonResponse(['error' => $e->getMessage()], $e->getCode());
    }
    return match (TRUE) {
      $result === NULL => new Response('', 204),
      // A document that is JSON already.
      is_string($result) => new Response($result, 200, ['Content-Type' => 'application/json']),
      default => new JsonResponse($result),
    };
  }

}
