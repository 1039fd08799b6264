package reports

import (
	"path"
	"slices"
	"strings"
)

// Severity is how much harm a fault does to the users of a bridge. The gravest fault is the one to fix first.
type Severity int

// The severities, the gravest first.
const (
	Exposure  Severity = iota // callers get what is not theirs: data, tools, secrets, the identity of another
	Execution                 // a call does not run as it was sent: other arguments, other results, twice
	Protocol                  // a client cannot rely on the responses: pages, errors, caching, HTTP, MCP
	Form                      // descriptions and schemas are worse than they could be
)

// severities are the names of the severities, as report.json has them.
var severities = []string{"exposure", "execution", "protocol", "form"}

func (s Severity) String() string { return severities[s] }

// MarshalText and UnmarshalText write a severity as its name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Severity) UnmarshalText(text []byte) error {
	if i := slices.Index(severities, string(text)); i >= 0 {
		*s = Severity(i)
	}
	return nil
}

// severityOf lists the clauses whose breach is not of the severity Protocol, by globs; the first that matches counts.
var severityOf = []struct {
	severity Severity
	globs    string
}{
	{Exposure, `access/* auth/own-account auth/every-request auth/invalid-token auth/token-* auth/no-passthrough auth/query-token
		auth/scope-enforced auth/insufficient-scope auth/removed-key auth/expires-in-use describe/hidden-404 describe/inaccessible-404
		invoke/hidden-404 invoke/denied invoke/no-trace-leak list/cursor-no-leak list/cursor-other-caller list/only-marked-methods
		http/no-shared-cache filter/include-exclude filter/defaults-safe filter/invoke-guarded fresh/per-user-ttl mcp/session mcp/origin
		replicas/mcp-session-owner replicas/permission-revoked upstream/no-ssrf schema/no-remote-ref per-tool/scopes load/concurrent-exact`},
	{Form, `mapping/* schema/* translate/* profile/* list/description-not-empty list/tool-optional-members errors/message-helps
		invoke/invalid-arguments-named`},
	{Execution, `load/concurrent-exact invoke/* upstream/* replicas/runs-once per-tool/name-binds fresh/removed-tool`},
}

// Severity is that of a breach of the clause; of another one, where all that was found is that its positive control fails. It is no
// exposure where all that was found is that callers lack something.
func (r Result) Severity() Severity {
	id := r.ID
	withheld := len(r.Findings) > 0 && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Withheld })
	if len(r.BlockedBy) > 0 {
		id = r.BlockedBy[0]
	}
	for _, row := range severityOf {
		for glob := range strings.FieldsSeq(row.globs) {
			if ok, _ := path.Match(glob, id); ok { // the globs are ours, so no error is possible
				if withheld && row.severity == Exposure {
					break // of a lower row, if one has it too
				}
				return row.severity
			}
		}
	}
	return Protocol
}
