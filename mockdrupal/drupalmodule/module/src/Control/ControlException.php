<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures\Control;

/**
 * A refusal of the control plane: its code is the HTTP status.
 */
final class ControlException extends \RuntimeException {

  /**
   * A request that is wrong.
   */
  public static function bad(string $message): self {
    return new self($message, 400);
  }

  /**
   * Something that the mock has and a real site has not.
   */
  public static function unable(string $message): self {
    return new self($message, 501);
  }

}
