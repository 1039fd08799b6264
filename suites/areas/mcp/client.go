package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/mcpschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// MustMCP gives a session to a check that tests something else: without a session that check is not testable.
func MustMCP(ctx context.Context, c check.Client, revision check.Revision) *check.Session {
	return opened(c.Session(ctx, revision))
}

func opened(s *check.Session) *check.Session {
	if s.Opened.RPCResult() == nil {
		check.BlockedBy(check.Finding{Subject: "no MCP session opens: " + s.Opened.Outcome()}, "mcp/initialize", "mcp/stateless-2026")
	}
	return s
}

// BeValid matches a response whose result or error conforms to its revision's schema.
func BeValid(revision check.Revision, kind mcpschema.Kind) types.GomegaMatcher {
	return &match.ResponseMatcher{Expected: fmt.Sprintf("a valid %s of %s", kind, revision), Test: func(a *check.Response) (string, bool) {
		var document any = a.RPC()
		if kind != mcpschema.Error {
			document = a.RPC()["result"]
		}
		if result, ok := document.(map[string]any); ok {
			result = maps.Clone(result)
			switch {
			case kind == mcpschema.ListTools: // mcp/client-tolerance tests the tools
				result["tools"] = []any{}
			case kind == mcpschema.CallTool && revision.Stateless(): // mcp/stateless-2026 tests it
				result["resultType"] = "complete"
			}
			document = result
		}
		fault := mcpschema.Fault(string(revision), kind, document)
		return "one that breaks the schema " + fault, fault == ""
	}}
}

// ofResult is BeValid for a response to the method that has a result, and no error in it. The request says its revision in a header.
func ofResult(method string, kind mcpschema.Kind) func(*check.T, *check.Response) types.GomegaMatcher {
	return func(_ *check.T, a *check.Response) types.GomegaMatcher {
		var asked struct{ Method string }
		revision := check.Revision(a.Sent.Get("Mcp-Protocol-Version"))
		known := []check.Revision{check.MCP2025June, check.MCP2025November, check.MCP2026July}
		if json.Unmarshal([]byte(a.Shown), &asked) != nil || asked.Method != method || !slices.Contains(known, revision) {
			return nil
		}
		if result := a.RPCResult(); result == nil || result["isError"] == true {
			return nil
		}
		return BeValid(revision, kind)
	}
}

func find(l check.MCPListing, name string) (check.Tool, bool) {
	for _, t := range l.Tools {
		if t.Name() == name {
			return t, true
		}
	}
	return nil, false
}

// MustListTools is ListAllTools for a check that tests something else: without a list that check is not testable.
func MustListTools(ctx context.Context, s *check.Session) check.MCPListing {
	l := check.ListAllTools(ctx, s)
	if last := l.Pages[len(l.Pages)-1]; len(l.Pages) > 1 && last.RPCCode() == "-32602" {
		l = check.ListAllTools(ctx, s) // the list changed between two pages
	}
	if !l.Fault.IsZero() {
		check.BlockedBy(l.Fault.About("tools/list, which the check needs, failed"), "mcp/tools-list")
	}
	return l
}

// mustList sends the tools/list that has to succeed before a check expects a refusal: without it the check is not testable.
func mustList(ctx context.Context, s *check.Session) {
	page := s.ListTools(ctx, "")
	if _, ok := page.RPCResult()["tools"].([]any); !ok {
		check.BlockedBy(check.Mismatch(page.Subject(), "a page of tools", page.RPCOutcome()).About("tools/list, which the check needs, failed"), "mcp/tools-list")
	}
}

// toolResult is a parsed result of tools/call.
type toolResult struct {
	isError    bool
	text       []string
	structured any
	has        bool // structuredContent is there
	whole      map[string]any
}

func toolResultOf(a *check.Response) toolResult {
	result := a.RPCResult()
	r := toolResult{whole: result}
	r.isError, _ = result["isError"].(bool)
	r.structured, r.has = result["structuredContent"]
	content, _ := result["content"].([]any)
	for _, block := range content {
		if block, ok := block.(map[string]any); ok && block["type"] == "text" {
			text, _ := block["text"].(string)
			r.text = append(r.text, text)
		}
	}
	return r
}

// value is the method's result: structuredContent, unwrapped where it wraps a result that is no object, or else the JSON
// of the first text.
func (r toolResult) value() any { return client.ValueOf(r.whole) }

// BeToolError matches a result of tools/call with isError true whose text holds all the words.
func BeToolError(words ...string) types.GomegaMatcher {
	expected := "a result with isError true"
	if len(words) > 0 {
		expected += " and a text with " + strings.Join(words, ", ")
	}
	return match.MatchRPCWhere(expected, func(a *check.Response) bool {
		r := toolResultOf(a)
		text := strings.Join(r.text, "\n")
		return r.isError && len(r.text) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}
