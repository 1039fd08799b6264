<?php

declare(strict_types=1);

namespace Drupal\bridgecheck_fixtures;

use Drupal\Component\Serialization\Json;

/**
 * Takes JSON texts apart without changing a byte of them.
 *
 * What json_decode() makes of 1.0, {} and 9223372036854775808 is not what was
 * sent; methods that return their arguments need that.
 */
final class JsonText {

  /**
   * The end of a value, a blank included.
   */
  private const STOPS = ",]} \t\n\r";

  /**
   * The members of an object, or the elements of a list, as they were written.
   *
   * @param string $text
   *   A valid JSON text.
   *
   * @return array<int|string, string>|null
   *   The values' texts by name, the last one where a name is repeated; NULL
   *   for a scalar.
   */
  public static function parts(string $text): ?array {
    $at = 0;
    self::skipBlanks($text, $at);
    $open = $text[$at] ?? '';
    if ($open !== '{' && $open !== '[') {
      return NULL;
    }
    $at++;
    $parts = [];
    while (TRUE) {
      $at += strspn($text, ", \t\n\r", $at);
      if (!isset($text[$at]) || $text[$at] === '}' || $text[$at] === ']') {
        return $parts;
      }
      if ($open === '{') {
        $name = json_decode(self::value($text, $at));
        $at += strspn($text, ": \t\n\r", $at);
        $parts[$name] = self::value($text, $at);
      }
      else {
        $parts[] = self::value($text, $at);
      }
    }
  }

  /**
   * A text without its blanks, its strings escaped as Drupal escapes them.
   */
  public static function normalize(string $text): string {
    $normal = '';
    $length = strlen($text);
    for ($at = 0; $at < $length;) {
      if ($text[$at] === '"') {
        $normal .= Json::encode(json_decode(self::value($text, $at)));
        continue;
      }
      if (!str_contains(" \t\n\r", $text[$at])) {
        $normal .= $text[$at];
      }
      $at++;
    }
    return $normal;
  }

  /**
   * Passes over one value and returns its text.
   */
  private static function value(string $text, int &$at): string {
    self::skipBlanks($text, $at);
    $start = $at;
    $depth = 0;
    do {
      switch ($text[$at]) {
        case '"':
          self::skipString($text, $at);
          break;

        case '{':
        case '[':
          $depth++;
          $at++;
          break;

        case '}':
        case ']':
          $depth--;
          $at++;
          break;

        default:
          $at += $depth === 0 ? strcspn($text, self::STOPS, $at) : max(1, strcspn($text, '"{}[]', $at));
      }
    } while ($depth > 0 && isset($text[$at]));
    return substr($text, $start, $at - $start);
  }

  /**
   * Passes over a string.
   */
  private static function skipString(string $text, int &$at): void {
    for ($at++; isset($text[$at]); $at++) {
      $at += strcspn($text, '"\\', $at);
      if (($text[$at] ?? '"') === '"') {
        $at++;
        return;
      }
      // A backslash and what it escapes.
      $at++;
    }
  }

  /**
   * Passes over blanks.
   */
  private static function skipBlanks(string $text, int &$at): void {
    $at += strspn($text, " \t\n\r", $at);
  }

}
