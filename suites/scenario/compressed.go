package scenario

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"mime"
	"slices"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// sameDocument reports whether a body is the JSON document of the other response, apart from the value of nextCursor.
func sameDocument(body []byte, other *check.Response) bool {
	v, err := exact.Parse(body)
	document, ok := v.(map[string]any)
	want := maps.Clone(other.Object())
	if err != nil || !ok || want == nil {
		return false
	}
	if _, isText := want["nextCursor"].(string); isText {
		if next, _ := document["nextCursor"].(string); next != "" {
			want["nextCursor"] = next
		}
	}
	return match.Difference(want, document) == ""
}

// DecodeTo matches a response in gzip that decodes to the document of the plain one.
func DecodeTo(plain *check.Response) types.GomegaMatcher {
	return match.Conform("gzip of the same document", func(r *check.Response) string {
		if r.Status != plain.Status {
			return r.Outcome()
		}
		if !slices.Contains(Listed(r, "Content-Encoding"), "gzip") {
			return "Content-Encoding " + Quoted(r.Header.Values("Content-Encoding"))
		}
		given, usual := r.Header.Get("Content-Type"), plain.Header.Get("Content-Type")
		if kind, _, err := mime.ParseMediaType(given); err != nil || kind != "application/json" && given != usual { // a charset says nothing of JSON
			return fmt.Sprintf("the Content-Type %q in place of %q", given, usual)
		}
		unzip, err := gzip.NewReader(bytes.NewReader(r.Body))
		if err != nil {
			return "a body that is no gzip: " + err.Error()
		}
		decoded, err := io.ReadAll(io.LimitReader(unzip, client.MaxResponse))
		switch {
		case err != nil:
			return "a broken gzip stream: " + err.Error()
		case !bytes.Equal(decoded, plain.Body) && !sameDocument(decoded, plain):
			return fmt.Sprintf("another document: %s", exact.Cut(string(decoded), 120))
		}
		return ""
	})
}
