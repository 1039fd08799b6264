package mutants

// The reasons why nothing in front of a bridge, or at the site's end of it, can do what a fix says.
const (
	cached   = "the fix changes what the bridge keeps between requests, which only the bridge can read or forget"
	refused  = "the bridge refuses what it should do: nothing outside of it can do it in its place"
	decides  = "the fix is to leave a decision to the site: a wrapper would decide in place of the bridge, not change it"
	inside   = "the fix changes how the bridge uses workers, locks, connections or clients"
	keys     = "the fix is in the library that checks the signature of a token: a wrapper would be a second implementation of it"
	wholeWay = "the fix replaces a whole part of the bridge: a wrapper that does it is another bridge"
)

// NotMechanical lists the clauses whose fix nothing outside of a bridge can apply, with the reason.
var NotMechanical = map[string]string{
	"list/cursor-opaque-roundtrip": cached,
	"list/cursor-other-caller":     cached,

	"mapping/long-names": "the names are cut in the bridge: which tool a cut name stands for is lost outside of it",
	"mapping/language":   "discovery belongs to no request of a caller, so that a wrapper cannot hand over the language",

	"describe/after-error":     cached,
	"invoke/empty-arguments":   refused,
	"invoke/runs-once":         "outside of the bridge a call that is sent again looks like a second call",
	"access/anonymous-granted": refused,

	"access/bad-credentials":         "from outside, credentials that the site refuses with 403 look like an account without a permission",
	"access/discovery-broad":         cached,
	"access/discovery-not-execution": decides,
	"access/route-permission":        decides,
	"access/no-cross-talk":           cached,
	"access/permission-revoked":      decides,
	"access/per-credential":          cached,

	"http/slow-client": inside,

	"translate/entity-reference":             "the values of a reference come from the site, by a method that the bridge's settings name",
	"translate/boolean-integer-decimal-list": wholeWay,
	"filter/include-exclude":                 wholeWay,
	"filter/defaults-safe":                   "the fix is the default of a setting",
	"fresh/cache-hit":                        cached,
	"fresh/ttl-expiry":                       cached,
	"fresh/invalidate":                       cached,
	"fresh/single-flight":                    cached,
	"fresh/stale-on-error":                   cached,
	"fresh/schema-change":                    cached,
	"fresh/notify":                           cached,
	"fresh/per-user-ttl":                     cached,
	"fresh/schema-mismatch":                  cached,
	"upstream/result-status":                 inside,
	"upstream/excess-bytes":                  inside,
	"upstream/pooled":                        inside,
	"upstream/timeout":                       inside,
	"upstream/down-and-up":                   inside,
	"upstream/cancel":                        inside,
	"upstream/huge-answer":                   inside,
	"upstream/no-ssrf":                       inside,
	"upstream/post-only":                     inside,
	"load/concurrent-exact":                  inside,
	"load/slow-method-isolated":              inside,
	"load/large-catalogue":                   cached,
	"load/discovery-budget":                  cached,
	"load/cold-list":                         "the fault is in what the bridge sends to the site, and a wrapper does not send it",
	"replicas/cursor":                        cached,
	"replicas/lists-agree":                   cached,
	"replicas/versions-agree":                cached,
	"replicas/mcp-session":                   cached,
	"replicas/mcp-session-owner":             cached,
	"replicas/changes":                       cached,
	"replicas/list-changed":                  cached,
	"replicas/permission-revoked":            decides,
	"replicas/runs-once":                     inside,
	"replicas/restart":                       cached,
	"replicas/shared-session-end":            cached,
	"replicas/shared-rate-limit":             cached,
	"mcp/parity":                             wholeWay,
	"mcp/execution-error":                    "the message of the method is lost before a wrapper sees it",
	"mcp/structured-mismatch":                "the result that breaks the schema is lost before a wrapper sees it",
	"mcp/undeclared-argument":                "it is the fix of invoke/undeclared-argument, whose remedy is applied to invoke",
	"mcp/invalid-arguments":                  "from outside, arguments that the bridge refuses look like a tool that it does not know",
	"mcp/unknown-tool":                       "from outside, a tool that the site denies looks like one that fails",
	"mcp/trace-context":                      "MCP's requests and those to the site have nothing in common that a wrapper sees",
	"mcp/order-stable":                       cached,
	"mcp/session":                            cached,
	"mcp/stdio":                              "a wrapper of HTTP does not see stdout",
	"profile/depth":                          "the fix changes the parameters of the method on the site",
	"profile/names-apart":                    "which method a name stands for is known to the bridge alone",
	"profile/name-with-prefix":               "under naming-underscore, which its mutant claims, the fix is a shorter id on the site",
	"auth/right-token":                       refused,
	"auth/own-account":                       cached,
	"auth/token-malformed":                   keys,
	"auth/token-signature":                   keys,
	"auth/token-key-confusion":               keys,
	"auth/token-key-algorithm":               keys,
	"auth/token-unknown-key":                 keys,
	"auth/token-own-key":                     keys,
	"auth/expires-in-use":                    cached,
	"auth/new-key":                           cached,
	"auth/removed-key":                       cached,
	"auth/server-down":                       cached,
	"auth/server-hangs":                      inside,
	"auth/metadata-issuer":                   keys,
	"auth/scope-enforced":                    "the fix needs the scopes of each tool and the right to run it, which the bridge decides together",
	"auth/no-passthrough":                    decides,
}
