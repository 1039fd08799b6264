package terminal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestJSON(t *testing.T) {
	const in = "{\"a\u202e\": \"\u009b31m ##[error] ###\U000E0041 é\u2028\", \"b\": [1.10]}\r\n"
	const want = `{"a\u202e": "\u009b31m #\u0023[error] #\u0023\u0023\udb40\udc41 é\u2028", "b": [1.10]}` + "\r\n"
	must.Equal(t, string(JSON([]byte(in))), want, "JSON")
}

func FuzzJSON(f *testing.F) {
	f.Add("a\u202e##[error]\u009b\U000E0041\\u0023#\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		data := must.Get(json.MarshalIndent(map[string]string{s: s}, "", " "))(t)
		safe := JSON(data)
		var before, after any
		must.Do(t, json.Unmarshal(data, &before))
		err := json.Unmarshal(safe, &after)
		must.Assert(t, err == nil && reflect.DeepEqual(before, after), "%s\nbecomes\n%s\nwhich is %v: %v", data, safe, after, err)
		if bytes.Contains(safe, []byte("##")) || command.Match(safe) || strings.IndexFunc(strings.ToValidUTF8(string(safe), ""), func(c rune) bool { return c != '\uFFFD' && unsafe(c) }) >= 0 {
			t.Fatalf("%s is not safe", safe)
		}
	})
}
