package match

import (
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/check"
)

// BeProtocolError matches a JSON-RPC error of a code, without a result.
func BeProtocolError(code string) types.GomegaMatcher {
	return &ResponseMatcher{Expected: "the protocol error " + code, Test: func(a *check.Response) (string, bool) {
		return a.RPCOutcome(), a.RPCCode() == code && a.RPC()["result"] == nil
	}}
}

// BeToolResult matches a result of tools/call that is no error.
func BeToolResult() types.GomegaMatcher {
	return &ResponseMatcher{Expected: "a result that is no error", Test: func(a *check.Response) (string, bool) {
		result := a.RPCResult()
		_, content := result["content"].([]any)
		return a.RPCOutcome(), content && result["isError"] != true
	}}
}
