package drupalmodule

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// notation is how values are written: as PHP code or as a Doctrine annotation.
type notation struct {
	open, close, arrow string
	null, yes, no      string
	text               func(string) string
}

// code is PHP.
var code = notation{"[", "]", " => ", "NULL", "TRUE", "FALSE", codeText}

// annotation is Doctrine's notation. It has no escapes and stands in a comment, whose lines begin with an asterisk: a text
// that it cannot hold becomes a constant of the class.
type annotation struct {
	notation
	class     string
	constants []string // the declarations
}

func newAnnotation(class string) *annotation {
	a := &annotation{class: class}
	a.notation = notation{"{", "}", " = ", "null", "true", "false", a.quoted}
	return a
}

func (a *annotation) quoted(s string) string {
	if !strings.Contains(s, "*/") && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	name := fmt.Sprintf("TEXT_%d", len(a.constants)+1)
	a.constants = append(a.constants, "  /**\n   * A text that an annotation cannot hold.\n   */\n  public const "+name+" = "+codeText(s)+";\n")
	return a.class + "::" + name
}

// schema writes a JSON Schema. The jsonrpc module takes none that is empty to PHP, and PHP has no place for one that is true
// or false.
func (n notation) schema(raw fixtures.Raw, indent string) (string, error) {
	v, err := php.Decode(raw)
	if a, ok := v.(*php.Array); err != nil || !ok || a.Len() == 0 {
		return "", fmt.Errorf("the jsonrpc module takes no schema like %.40s; give it a member, as a title", raw)
	}
	return n.value(v, indent)
}

// value writes a value; indent is that of the line on which it begins.
func (n notation) value(v php.Value, indent string) (string, error) {
	switch v := v.(type) {
	case nil:
		return n.null, nil
	case bool:
		if v {
			return n.yes, nil
		}
		return n.no, nil
	case int64:
		if v == math.MinInt64 {
			return "PHP_INT_MIN", nil // its digits would be a float
		}
		return strconv.FormatInt(v, 10), nil
	case float64:
		return n.float(v)
	case string:
		return n.text(v), nil
	case *php.Array:
		return n.array(v, indent)
	default:
		return "", fmt.Errorf("a value of type %T", v)
	}
}

func (n notation) float(v float64) (string, error) {
	switch {
	case math.IsInf(v, 1):
		return "INF", nil
	case math.IsInf(v, -1):
		return "-INF", nil
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text, nil
}

func (n notation) array(a *php.Array, indent string) (string, error) {
	if a.Len() == 0 {
		return n.open + n.close, nil
	}
	inner := indent + "  "
	var b strings.Builder
	b.WriteString(n.open + "\n")
	for i := range a.Len() {
		key, item := a.At(i)
		b.WriteString(inner)
		if !a.IsList() {
			b.WriteString(n.key(key) + n.arrow)
		}
		text, err := n.value(item, inner)
		if err != nil {
			return "", err
		}
		b.WriteString(text + ",\n")
	}
	b.WriteString(indent + n.close)
	return b.String(), nil
}

// key is an array's key.
func (n notation) key(k php.Key) string {
	if k.IsInt {
		return k.String()
	}
	return n.text(k.Str)
}

// codeText is a PHP string: in single quotes where it has no control characters.
func codeText(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == '\ufffd' }) {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '"' || r == '\\' || r == '$':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029:
			fmt.Fprintf(&b, `\u{%X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}
