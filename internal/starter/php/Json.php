<?php

declare(strict_types=1);

/** JSON that keeps what PHP's arrays and floats lose (invoke/arguments-forwarded, invoke/result-exact). */
final class Json
{
    public static function encode(mixed $value): string
    {
        return json_encode($value, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION);
    }

    /** Decodes objects to stdClass, so that {} and [] stay apart. */
    public static function decode(string $json): mixed
    {
        return json_decode($json, false, 512, JSON_THROW_ON_ERROR);
    }

    /**
     * The members of the object that a JSON text is, each as it is written there, without its blanks.
     *
     * @return array<string, string>
     *
     * @throws JsonException if the text is not JSON, is not an object, or an object in it has two members of one name
     */
    public static function members(string $json): array
    {
        $json = trim($json, " \t\r\n");
        json_decode($json, true, 512, JSON_THROW_ON_ERROR);
        if ($json[0] !== '{') {
            throw new JsonException('not an object');
        }
        $members = [];
        $names = []; // of each object that is open, the names so far; of each list null
        $name = '';  // of the outer object's member that is open
        $start = 0;  // of its value
        for ($i = 0; $i < strlen($json); ++$i) {
            $i += strcspn($json, '"{}[],', $i);
            switch ($json[$i] ?? '') {
                case '{':
                case '[':
                    $names[] = $json[$i] === '{' ? [] : null;
                    break;
                case '}':
                case ']':
                case ',':
                    if (count($names) === 1 && $start > 0) {
                        $members[$name] = trim(substr($json, $start, $i - $start), " \t\r\n");
                        $start = 0;
                    }
                    if ($json[$i] !== ',') {
                        array_pop($names);
                    }
                    break;
                case '"':
                    $end = $i + 1;
                    while ($json[$end += strcspn($json, '"\\', $end)] === '\\') {
                        $end += 2;
                    }
                    $after = $end + 1 + strspn($json, " \t\r\n", $end + 1);
                    if (($json[$after] ?? '') === ':') {
                        $key = json_decode(substr($json, $i, $end + 1 - $i));
                        $object = array_key_last($names);
                        if (isset($names[$object][$key])) {
                            throw new JsonException("two members are named $key");
                        }
                        $names[$object][$key] = true;
                        if ($object === 0) {
                            [$name, $start] = [$key, $after + 1];
                        }
                    }
                    $i = $end;
            }
        }

        return $members;
    }
}
