package match

import (
	"fmt"
	"mime"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// KeepEnvelope matches a refusal that is the contract's JSON and nothing beside it.
func KeepEnvelope() OmegaMatcher {
	return Conform(`JSON {"error": {"code": string, "message": non-empty string}}`, func(a *check.Response) string {
		if a.RefusedForLength() || a.PermittedToProxy() {
			return "" // refused before routing
		}
		t, parameters, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
		if charset, named := parameters["charset"]; t != "application/json" && !strings.HasSuffix(t, "+json") || named && !isUTF8(charset) {
			return fmt.Sprintf("%d with Content-Type %q: %s", a.Status, a.Header.Get("Content-Type"), exact.Cut(client.OneLine(string(a.Body)), 120))
		}
		v, err := a.JSON()
		if err != nil {
			return fmt.Sprintf("%d with a body that %v", a.Status, err)
		}
		object, _ := v.(map[string]any)
		refused, ok := object["error"].(map[string]any)
		if !ok {
			return a.Outcome()
		}
		if _, ok := refused["code"].(string); !ok {
			return "no string as code: " + a.Outcome()
		}
		if message, ok := refused["message"].(string); !ok || strings.TrimSpace(message) == "" {
			return "no message: " + a.Outcome()
		}
		for _, name := range []string{"result", "tool", "tools"} {
			if _, there := object[name]; there {
				return fmt.Sprintf("`%s` beside the error: %s", name, a.Outcome())
			}
		}
		return ""
	})
}

// HaveDocumentedCode matches a refusal with a code of the documented set; MCP has codes of its own.
func HaveDocumentedCode(all *contract.Contract) OmegaMatcher {
	return Conform("a code of the documented set", func(r *check.Response) string {
		if r.IsView() || all.DocumentedCode(r.Code()) {
			return ""
		}
		return fmt.Sprintf("%q", r.Code())
	})
}

// BeEnvelope matches a refusal in the contract's envelope.
func BeEnvelope() OmegaMatcher {
	return MatchWhere(`{"error": {"code", "message"}}`, func(a *check.Response) bool { return a.Code() != "" && a.Message() != "" })
}
