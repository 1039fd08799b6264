package match

import (
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/check"
)

// MatchRPCWhere is MatchWhere for a message of MCP.
func MatchRPCWhere(expected string, ok func(a *check.Response) bool) types.GomegaMatcher {
	return &ResponseMatcher{Expected: expected, Test: func(a *check.Response) (string, bool) { return a.RPCOutcome(), ok(a) }}
}

// HaveRPCResult matches a message with a result.
func HaveRPCResult(expected string) types.GomegaMatcher {
	return MatchRPCWhere(expected, func(a *check.Response) bool { return a.RPCResult() != nil })
}

// BeProtocolError matches a JSON-RPC error of a code, without a result.
func BeProtocolError(code string) types.GomegaMatcher {
	return MatchRPCWhere("the protocol error "+code, func(a *check.Response) bool { return a.RPCCode() == code && a.RPC()["result"] == nil })
}

// BeToolResult matches a result of tools/call that is no error.
func BeToolResult() types.GomegaMatcher {
	return MatchRPCWhere("a result that is no error", func(a *check.Response) bool {
		result := a.RPCResult()
		_, content := result["content"].([]any)
		return content && result["isError"] != true
	})
}
