package php

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// EncodeError is why json_encode refuses a value, in PHP's words; its caller in PHP sees FALSE.
type EncodeError string

func (e EncodeError) Error() string { return string(e) }

// What json_encode refuses.
const (
	ErrInfNaN EncodeError = "Inf and NaN cannot be JSON encoded"
	ErrDepth  EncodeError = "Maximum stack depth exceeded"
)

// Encode writes the value as Drupal's Json::encode does, with <, >, ', & and " as \u00XX, / as \/ and all beyond ASCII
// as \u and four hexadecimal digits. It fails with ErrInfNaN or ErrDepth where PHP does.
func Encode(v Value) ([]byte, error) { return Append(nil, v) }

// Append writes the value as Encode does, behind b.
func Append(b []byte, v Value) ([]byte, error) { return appendValue(b, v, 0) }

func appendValue(b []byte, v Value, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return b, ErrInfNaN
		}
		return append(b, formatFloat(v, -1, 'e')...), nil
	case string:
		return AppendString(b, v), nil
	case Literal:
		return appendLiteral(b, v), nil
	case Object:
		return appendArray(b, v.Array, true, depth+1)
	case *Array:
		return appendArray(b, v, !v.IsList(), depth+1)
	default:
		panic("php: no PHP value: " + strconv.Quote(TypeName(v)))
	}
}

// appendArray writes an array as an object, which has its keys, or as a list.
func appendArray(b []byte, a *Array, object bool, depth int) (_ []byte, err error) {
	if depth > MaxDepth {
		return b, ErrDepth
	}
	brackets := "[]"
	if object {
		brackets = "{}"
	}
	b = append(b, brackets[0])
	for i, v := range a.values {
		if i > 0 {
			b = append(b, ',')
		}
		if object {
			b = append(AppendString(b, a.keys[i].String()), ':')
		}
		if b, err = appendValue(b, v, depth); err != nil {
			return b, err
		}
	}
	return append(b, brackets[1]), nil
}

// formatFloat prints f with so many digits, or for -1 the fewest that give it back, in PHP's layout: 1, 0.0001, 1.0e-5,
// 1.0e+18. The letter is e in JSON, E in strings.
func formatFloat(f float64, digits int, letter byte) string {
	if f == 0 {
		if math.Signbit(f) {
			return "-0"
		}
		return "0"
	}
	decimals, longest := -1, 17 // serialize_precision -1 lays out as 17 does
	if digits > 0 {
		decimals, longest = digits-1, digits
	}
	mantissa, exp, isFinite := strings.Cut(strconv.FormatFloat(f, 'e', decimals, 64), "e")
	if !isFinite {
		return strings.ToUpper(strings.TrimPrefix(mantissa, "+")) // INF, -INF, NAN
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	point, _ := strconv.Atoi(exp) // the decimal point stands behind this many digits, less one
	if point >= -4 && point < longest {
		shortest, _ := strconv.ParseFloat(mantissa+"e"+exp, 64) // it has no more digits than the layout holds
		return strconv.FormatFloat(shortest, 'f', -1, 64)
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0" // one digit alone, with a sign or not
	}
	sign := ""
	if point >= 0 {
		sign = "+"
	}
	return mantissa + string(letter) + sign + strconv.Itoa(point)
}

const hexLower, hexUpper = "0123456789abcdef", "0123456789ABCDEF"

// AppendString writes s as a JSON string with PHP's escapes. Bytes that are not UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			b = appendRune(b, r)
			i += n
			continue
		}
		b = appendASCII(b, c)
		i++
	}
	return append(b, '"')
}

func appendRune(b []byte, r rune) []byte {
	if r > 0xFFFF {
		r -= 0x10000
		b = appendUnicode(b, 0xD800+r>>10, hexLower)
		r = 0xDC00 + r&0x3FF
	}
	return appendUnicode(b, r, hexLower)
}

func appendUnicode(b []byte, r rune, hex string) []byte {
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

func appendASCII(b []byte, c byte) []byte {
	switch c {
	case '/', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	case '<', '>', '\'', '&', '"':
		return appendUnicode(b, rune(c), hexUpper)
	}
	if c < 0x20 {
		return appendUnicode(b, rune(c), hexLower)
	}
	return append(b, c)
}

// appendLiteral copies a valid JSON document, without its blanks, its strings escaped as PHP does.
func appendLiteral(b []byte, doc []byte) []byte {
	d := decoder{data: doc}
	for d.at < len(doc) {
		switch c := doc[d.at]; c {
		case ' ', '\t', '\n', '\r':
			d.at++
		case '"':
			s, err := d.text()
			if err != nil {
				return append(b, "null"...)
			}
			b = AppendString(b, s)
		default:
			b = append(b, c)
			d.at++
		}
	}
	return b
}
