package exact_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// asEncodingJSON is what the standard library writes.
func asEncodingJSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must.Do(t, enc.Encode(v))
	return strings.TrimSuffix(b.String(), "\n")
}

func TestWritesAsTheStandardLibraryDoes(t *testing.T) {
	type other map[string]any
	all := []any{
		nil, true, false, 1, -2.5, 1e21, json.Number("1.0"), json.Number("-0"), json.Number(""), json.RawMessage(`{ "a" : 1 }`),
		"", "plain", `"\/`, "<a href='x'>&</a>", "\x00\x1f\x7f", "é € 😀", "\u2028\u2029", "\xff\xfe", "a\xe2\x80",
		map[string]any(nil), []any(nil), map[string]any{}, []any{}, []string{"a"}, other{"b": 1, "a": []any{}},
		map[string]any{"z": 1, "a": []any{"x", json.Number("12345678901234567890"), nil}, "é": other{}, "\"": map[string]any{"": ""}},
	}
	for _, v := range append(all, all) {
		got, err := exact.Write(v)
		if err != nil {
			t.Errorf("%#v: %v", v, err)
		} else if want := asEncodingJSON(t, v); string(got) != want {
			t.Errorf("%#v: wrote %s, not %s", v, got, want)
		}
	}
	for _, v := range []any{json.Number("1x"), json.Number("01"), math.NaN(), map[string]any{"a": []any{func() {}}}} {
		must.Refuse(exact.Write(v))(t, "", v)
	}
}
