package list

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func compressed(t *testing.T, text string) string {
	var b strings.Builder
	w := zlib.NewWriter(&b)
	_, err := w.Write([]byte(text))
	must.Assert(t, err == nil && w.Close() == nil, "the text was not compressed")
	return b.String()
}

func TestDecodingsFindNamesInCursors(t *testing.T) {
	const secret = "node.delete"
	inJSON := `{"after":"` + secret + `","offset":50}`
	for name, cursor := range map[string]string{
		"in clear":            "after:" + secret,
		"base64":              base64.StdEncoding.EncodeToString([]byte(inJSON)),
		"base64, no padding":  base64.RawStdEncoding.EncodeToString([]byte(inJSON)),
		"base64 of URLs":      base64.URLEncoding.EncodeToString([]byte("???" + secret)),
		"twice base64":        base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(secret)))),
		"hexadecimal":         hex.EncodeToString([]byte(secret)),
		"percent-encoded":     strings.ReplaceAll(url.QueryEscape(inJSON), ".", "%2E"),
		"hexadecimal in JSON": base64.StdEncoding.EncodeToString([]byte(`{"k":"` + hex.EncodeToString([]byte(secret)) + `"}`)),
		"zlib in base64":      base64.URLEncoding.EncodeToString([]byte(compressed(t, inJSON))),
		"part of a token":     "v1." + base64.RawURLEncoding.EncodeToString([]byte(secret)) + ".c2ln",
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.ContainsFunc(decodings(cursor, 3), func(s string) bool { return strings.Contains(s, secret) }) {
				t.Errorf("%q was not found in %q", secret, cursor)
			}
		})
	}
}
