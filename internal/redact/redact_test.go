package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redact"
)

// encodings are ways in which a text travels; every one is undone by another's ordinary decoder.
var encodings = map[string]func(string) string{
	"as it stands":         func(s string) string { return s },
	"a query":              url.QueryEscape,
	"a path":               url.PathEscape,
	"every byte percented": func(s string) string { return eachByte(s, "%%%02X") },
	"percented, lower":     func(s string) string { return eachByte(s, "%%%02x") },
	"JSON":                 func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"JSON escapes alone":   func(s string) string { return eachUnit(s) },
	"Go's quotes":          strconv.QuoteToASCII,
	"HTML":                 html.EscapeString,
	"decimal entities":     func(s string) string { return eachRune(s, "&#%d;") },
	"hexadecimal entities": func(s string) string { return eachRune(s, "&#x%X;") },
	"base64":               func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, one before":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s + "yz")) },
	"base64, two before":   func(s string) string { return base64.URLEncoding.EncodeToString([]byte("xy" + s + "z")) },
	"hexadecimal":          func(s string) string { return hex.EncodeToString([]byte(s)) },
}

func eachByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func eachRune(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

func eachUnit(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0xFFFF {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xD800+r>>10, 0xDC00+r&0x3FF)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func TestTextHoldsNoSecretInAnyEncoding(t *testing.T) {
	for _, secret := range []string{"hunter2hunter2", "p&ss \"w<o>rd'%/+=", "pässwörd-🔑-end", "SESSabc=def%2Cghi"} {
		var r redact.Redactor
		r.Add(secret)
		for outer, wrap := range encodings {
			for inner, encode := range encodings {
				shown := wrap("before " + encode(secret) + " after")
				if strings.HasPrefix(outer, "base64") || outer == "hexadecimal" {
					if inner != "as it stands" {
						continue // what is inside of base64 is found only where it is the secret itself
					}
				}
				got := r.Text(shown)
				must.Expect(t, strings.Contains(got, redact.Mark),
					"%q as %s within %s: %q still stands as %q", secret, inner, outer, shown, got)
			}
		}
	}
}

func TestTextLeavesTheRestAsItIs(t *testing.T) {
	var r redact.Redactor
	r.Add("secret-one", "secret-two", "abc") // the last is too short
	for in, want := range map[string]string{
		"":                                  "",
		"a secret-one b secret-two c":       "a [redacted] b [redacted] c",
		`%41 \u0041 &amp; + secret-three`:   `%41 \u0041 &amp; + secret-three`,
		"abc":                               "abc",
		"secret-onesecret-two":              "[redacted]",
		`{"x":"\u0073ecret-one","y":"%zz"}`: `{"x":"[redacted]","y":"%zz"}`,
		"not cut off: secret-o":             "not cut off: secret-o",
		"cut off: secret-t… and more":       "cut off: [redacted]… and more",
		"\xff\xfesecret-one\x00":            "\xff\xfe[redacted]\x00",
	} {
		must.Equal(t, r.Text(in), want, "Text(%q)", in)
	}
}

func TestWriterSeesSecretsAcrossWrites(t *testing.T) {
	var r redact.Redactor
	r.Add("secret-one")
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, part := range []string{"first line\nsec", "ret-", "one\nla", "st secret-", "one"} {
		must.Get(w.Write([]byte(part)))(t)
	}
	must.Do(t, w.Close())
	got, want := out.String(), "first line\n[redacted]\nlast [redacted]"
	must.Expect(t, got == want, "wrote %q, want %q", got, want)
}

// written is what a Writer makes of a text that comes in parts of some size. held: see Writer; 0 is as usual.
func written(t testing.TB, r *redact.Redactor, text string, part, held int) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	if held > 0 {
		w.Hold(held)
	}
	for len(text) > 0 {
		n := min(part, len(text))
		must.Get(w.Write([]byte(text[:n])))(t)
		text = text[n:]
	}
	must.Do(t, w.Close())
	return out.String()
}

// However long a line without an end is, and wherever the secret is in it, the secret does not get through.
func TestWriterSeesSecretsWithinALongLine(t *testing.T) {
	names := slices.Sorted(maps.Keys(encodings))
	rapid.Check(t, func(rt *rapid.T) {
		var r redact.Redactor
		secret := "hunter2-" + rapid.StringMatching(`[a-z0-9&<"ö]{4,30}`).Draw(rt, "secret") + "-end"
		r.Add(secret)
		shown := encodings[rapid.SampledFrom(names).Draw(rt, "encoding")](secret)
		// The places where a part ends up to which all is written: about 64 KiB before the end of a part.
		part := rapid.SampledFrom([]int{1000, 4096, 32 << 10, 200 << 10}).Draw(rt, "part")
		before := rapid.SampledFrom([]int{64 << 10, 67_000, 68_000, 128 << 10, 200<<10 - 64<<10}).Draw(rt, "before") - rapid.IntRange(0, len(shown)+4).Draw(rt, "less")
		text := strings.Repeat("x", before) + shown + strings.Repeat("y", 200_000)
		got := written(t, &r, text, part, 0)
		want := strings.Repeat("x", before) + redact.Mark
		if !strings.HasPrefix(r.Text(text), want) { // base64 shares characters with what is around it, and quotes stay
			want = r.Text(text)[:before]
		}
		must.Assert(rt, strings.Contains(got, redact.Mark) && !strings.Contains(got, shown) && strings.HasPrefix(got, want),
			"%q after %d bytes, in parts of %d, gives %q", shown, before, part, strings.Trim(got, "xy"))
	})
}

// A text and its parts are redacted alike.
func FuzzWriter(f *testing.F) {
	f.Add("secret-one", 300, 90, 10)
	f.Add("secret-one%41", 3000, 290, 7)
	f.Add("%%%2525", 1000, 97, 200)
	f.Fuzz(func(t *testing.T, secret string, length, at, part int) {
		const held = 100
		length = min(max(length, 0), 5000)
		at, part = min(max(at, 0), length), min(max(part, 1), 5000)
		if len(secret) < redact.Shortest || len(secret) > held || strings.ContainsAny(secret, ".\n") {
			return
		}
		var r redact.Redactor
		r.Add(secret)
		text := strings.Repeat(".", at) + secret + strings.Repeat(".", length-at)
		if got, want := written(t, &r, text, part, held), r.Text(text); got != want {
			t.Errorf("%q after %d of %d bytes, in parts of %d, gives %q, at once %q", secret, at, length, part, strings.Trim(got, "."), strings.Trim(want, "."))
		}
	})
}

func TestTextIsIdempotentAndKeepsStrangers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r redact.Redactor
		secret := rapid.StringN(redact.Shortest, 20, 40).Draw(t, "secret")
		r.Add(secret)
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		got := r.Text(before + secret + after)
		must.Assert(t, !strings.Contains(got, secret) || strings.Contains(redact.Mark, secret), "%q holds %q", got, secret)
		var none redact.Redactor
		text := before + after
		must.Assert(t, none.Text(text) == text, "without secrets %q became %q", text, none.Text(text))
	})
}

func FuzzText(f *testing.F) {
	f.Add("secret-one", `{"a":"\ud83d\ud83d%4&#x;&#99999999999;\x\u12"}`)
	f.Fuzz(func(t *testing.T, secret, text string) {
		var r redact.Redactor
		r.Add(secret)
		if got := r.Text(text); len(secret) >= redact.Shortest && !strings.Contains(redact.Mark, secret) && !strings.Contains(text, "redacted") &&
			strings.Contains(got, secret) && !strings.Contains(secret, "[") && !strings.Contains(secret, "]") {
			t.Errorf("%q holds %q", got, secret)
		}
	})
}
