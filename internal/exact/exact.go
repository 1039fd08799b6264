// Package exact reads JSON the way a contract on JSON needs it: nothing lenient, nothing rounded. It is for testing
// documents, not for serving them. Numbers stay as written; two numbers are equal when their decimal values are.
package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting that Parse follows: a hostile response must not exhaust the stack.
const maxDepth = 9_990 // below jsontext's own bound

// Parse reads one JSON document into nil, bool, string, json.Number, []any and map[string]any. Beside what
// encoding/json refuses, a byte order mark, invalid UTF-8, a duplicate member name and anything after the document
// are errors that say where.
func Parse(data []byte) (any, error) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, fmt.Errorf("starts with a byte order mark")
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("is not valid UTF-8 (byte %d)", invalidAt(data))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("is empty")
	}
	// A lone surrogate in an escape is U+FFFD, as encoding/json has it.
	r := reader{jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), string(data)}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.ReadToken(); err != io.EOF {
		return nil, fmt.Errorf("has more after the document, at byte %d", r.InputOffset())
	}
	return v, nil
}

// MustParse is Parse for a document that a check or the site file spells out.
func MustParse[T ~string | ~[]byte](document T) any {
	v, err := Parse([]byte(document))
	if err != nil {
		panic(fmt.Sprintf("JSON of a check or a site %v: %.200s", err, document))
	}
	return v
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// reader reads a document. The strings and numbers that it returns share its text.
type reader struct {
	*jsontext.Decoder
	text string
}

func (r reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	switch r.PeekKind() {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	}
	v, err := r.ReadValue()
	if err != nil {
		return nil, notJSON(err)
	}
	switch v.Kind() {
	case 'n':
		return nil, nil
	case '"':
		return r.str(v), nil
	case '0':
		return json.Number(r.written(v)), nil
	}
	return v.Kind() == 't', nil
}

func (r reader) object(depth int) (any, error) {
	if _, err := r.ReadToken(); err != nil {
		return nil, notJSON(err)
	}
	object := map[string]any{}
	for r.PeekKind() == '"' {
		quoted, err := r.ReadValue()
		if err != nil {
			return nil, notJSON(err)
		}
		name := r.str(quoted)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("has the member %q twice in one object (at %s)", name, r.StackPointer())
		}
		if object[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	if _, err := r.ReadToken(); err != nil { // the closing brace, or what is wrong
		return nil, notJSON(err)
	}
	return object, nil
}

func (r reader) list(depth int) (any, error) {
	if _, err := r.ReadToken(); err != nil {
		return nil, notJSON(err)
	}
	list := []any{}
	for r.PeekKind() != ']' {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if _, err := r.ReadToken(); err != nil {
		return nil, notJSON(err)
	}
	return list, nil
}

// written is the text of the value that was read last.
func (r reader) written(v jsontext.Value) string {
	end := r.InputOffset()
	return r.text[end-int64(len(v)) : end]
}

// str is the string of a quoted text that was read last.
func (r reader) str(v jsontext.Value) string {
	if bytes.IndexByte(v, '\\') < 0 {
		quoted := r.written(v)
		return quoted[1 : len(quoted)-1]
	}
	b, _ := jsontext.AppendUnquote(nil, v) // its error is that of lone surrogates
	return string(b)
}

func notJSON(err error) error {
	if e := (*jsontext.SyntacticError)(nil); errors.As(err, &e) {
		return fmt.Errorf("is not JSON: %w (byte %d)", e.Err, e.ByteOffset)
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// Equal reports whether two parsed documents mean the same: member order is free, list order is not, numbers are
// compared by value, and {} is not [].
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		if reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer() { // responses that say the same share their values
			return true
		}
		for name, member := range a {
			if other, there := b[name]; !there || !Equal(member, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && SameNumber(string(a), string(b))
	}
	return a == b
}

// Diff names the first place at which got differs from want, as `at /path: expected X, got Y`; "" when they are equal.
func Diff(want, got any) string {
	if Equal(want, got) {
		return ""
	}
	return diff(want, got, "")
}

func diff(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return differs(at, want, got)
		}
		for _, name := range names(w, g) {
			wv, wanted := w[name]
			gv, there := g[name]
			switch {
			case !there:
				return fmt.Sprintf("at %s/%s: expected %s, got nothing", at, name, Short(wv))
			case !wanted:
				return fmt.Sprintf("at %s/%s: expected no such member, got %s", at, name, Short(gv))
			}
			if d := diff(wv, gv, at+"/"+name); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok {
			return differs(at, want, got)
		}
		for i := range w {
			if i >= len(g) {
				return fmt.Sprintf("at %s: expected %d items, got %d", pointer(at), len(w), len(g))
			}
			if d := diff(w[i], g[i], fmt.Sprintf("%s/%d", at, i)); d != "" {
				return d
			}
		}
		if len(g) > len(w) {
			return fmt.Sprintf("at %s: expected %d items, got %d", pointer(at), len(w), len(g))
		}
		return ""
	case json.Number:
		if g, ok := got.(json.Number); ok && SameNumber(string(w), string(g)) {
			return ""
		}
		return differs(at, want, got)
	default:
		if want == got { // no list and no object: of such interfaces only those of the same type are compared
			return ""
		}
		return differs(at, want, got)
	}
}

func names(a, b map[string]any) []string {
	all := make([]string, 0, len(a)+len(b))
	for n := range a {
		all = append(all, n)
	}
	for n := range b {
		if _, both := a[n]; !both {
			all = append(all, n)
		}
	}
	sort.Strings(all)
	return all
}

func differs(at string, want, got any) string {
	return fmt.Sprintf("at %s: %sexpected %s, got %s", pointer(at), Apart(want, got), Short(want), Short(got))
}

// Apart says from which character on two texts differ, as `from character 12 on U+0065 U+0301 for U+00E9: `, where that is not seen at
// once: they are long, or have more than ASCII. Else it is "".
func Apart(want, got any) string {
	w, isText := want.(string)
	g, both := got.(string)
	if !isText || !both || w == g || len(w)+len(g) < 100 && isASCII(w+g) {
		return ""
	}
	wanted, given, at := []rune(w), []rune(g), 0
	for at < min(len(wanted), len(given)) && wanted[at] == given[at] {
		at++
	}
	return fmt.Sprintf("from character %d on %s for %s: ", at+1, codePoints(given[at:]), codePoints(wanted[at:]))
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// codePoints are the first two of a text, which shows what looks alike.
func codePoints(text []rune) string {
	switch len(text) {
	case 0:
		return "its end"
	case 1:
		return fmt.Sprintf("%U", text[0])
	}
	return fmt.Sprintf("%U %U", text[0], text[1])
}

func pointer(at string) string {
	if at == "" {
		return "the top"
	}
	return at
}

// Short writes a parsed value as JSON, cut to a length that fits a message.
func Short(v any) string {
	text, err := Write(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return Cut(string(text), 200)
}

// Cut shortens s to at most n bytes at a rune's border and says how much is left out.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}

// SameNumber reports whether two JSON number texts have the same decimal value, whatever their form: 1.0, 1 and 10e-1.
func SameNumber(a, b string) bool {
	if a == b {
		return true
	}
	an, ad, ae, ok := decimal(a)
	bn, bd, be, ok2 := decimal(b)
	return ok && ok2 && ad == bd && (ad == "" || an == bn && ae.Cmp(be) == 0)
}

// decimal splits a number into sign, significant digits and exponent; no digits means zero.
func decimal(s string) (negative bool, digits string, exponent *big.Int, ok bool) {
	negative = strings.HasPrefix(s, "-")
	mantissa, exp, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(s, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent = new(big.Int)
	if exp != "" {
		if _, ok := exponent.SetString(strings.TrimPrefix(exp, "+"), 10); !ok {
			return false, "", nil, false
		}
	}
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	trimmed := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(trimmed))))
	return negative, trimmed, exponent, true
}
