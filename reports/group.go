package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// Group is the findings of all clauses that have one cause. A clause with findings of several causes is in several groups.
type Group struct {
	Cause    string   `json:"cause"`    // in one line
	Clauses  []string `json:"clauses"`  // in report order
	Failing  int      `json:"failing"`  // how many of them fail
	Findings int      `json:"findings"` // 0: the clauses have a message and no finding

	members []member
}

// member is one finding, by its place in the report; finding -1 is a result that has none.
type member struct{ result, finding int }

// cause is what makes two findings one entry. It is made of their data; two equal values are one cause.
type cause struct {
	kind      causeKind
	status    int    // of the response
	mediaType string // of the response
	shape     string // of the body of the response: member names and kinds, no values
	code      string // of the error in the body
	expected  string
	clause    string
	text      string
}

type causeKind int

const (
	ofClause      causeKind = iota // nothing but the clause is known
	ofMessage                      // a result without findings, by its message
	missingHeader                  // by its name
	noResponse                     // the connection was closed, or nothing came in time: by the error
	serverError                    // 5xx
	redirect                       // 3xx
	wrongEnvelope                  // a 4xx without the error object of the contract
	refusal                        // a 4xx with it
	wrongType                      // a 2xx whose Content-Type is missing or not JSON
	invalidJSON                    // a 2xx that says that it is JSON
	mismatch                       // a 2xx with other content than expected
)

// Groups groups what a reader has to act on: the findings, which no baseline excuses, of clauses that fail, warn, end in an
// error or keep a MUST untested. Every finding is in exactly one group. The group that explains most failures is the first.
func (r *Report) Groups() []Group {
	blocked := map[string]bool{}
	for _, result := range r.Blocked() {
		blocked[result.ID] = true
	}
	at := map[cause]int{}
	var groups []Group
	for i, result := range r.Results {
		if !slices.Contains([]Verdict{Fail, Error, Fixed, Warn}, result.Verdict) && !blocked[result.ID] {
			continue
		}
		add := func(finding int, why cause) {
			n, known := at[why]
			if !known {
				n = len(groups)
				at[why] = n
				groups = append(groups, Group{Cause: why.String()})
			}
			g := &groups[n]
			g.members = append(g.members, member{i, finding})
			if finding >= 0 {
				g.Findings++
			}
			if !slices.Contains(g.Clauses, result.ID) {
				g.Clauses = append(g.Clauses, result.ID)
				if result.Verdict == Fail {
					g.Failing++
				}
			}
		}
		for j, f := range result.Findings {
			if f.KnownReason == "" {
				add(j, result.causeOf(f))
			}
		}
		if len(result.Findings) == 0 {
			add(-1, cause{kind: ofMessage, clause: string(result.Verdict), text: result.Message})
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Failing, a.Failing), cmp.Compare(len(b.Clauses), len(a.Clauses)))
	})
	return groups
}

// FirstCause is the group that explains most failures. False: no group explains two or more.
func (r *Report) FirstCause() (Group, bool) {
	groups := r.Groups()
	if len(groups) == 0 || groups[0].Failing < 2 {
		return Group{}, false
	}
	return groups[0], true
}

// Explains is g as a sentence that says how much of r it explains.
func (g Group) Explains(r *Report) string {
	return fmt.Sprintf("%s: explains %d of %s", g.Cause, g.Failing, plural(r.count().Fail, "failure"))
}

// causeOf classifies a finding of r.
func (r Result) causeOf(f Finding) cause {
	own := cause{kind: ofClause, clause: r.ID, text: r.Message}
	e, ok := r.exchange(f)
	if !ok {
		if f.Expected != "" {
			own.expected = f.Expected
		}
		return own
	}
	switch {
	case e.Response != nil:
	case e.Error != "":
		return cause{kind: noResponse, text: e.Error}
	default:
		return own
	}
	if f.Missing != "" {
		return cause{kind: missingHeader, text: f.Missing}
	}
	m := *e.Response
	shape, code, valid := shapeOf(m)
	mediaType := mediaTypeOf(m)
	switch {
	case m.Status >= 500:
		return cause{kind: serverError, status: m.Status, mediaType: mediaType, shape: shape, code: code}
	case m.Status >= 400 && code == "":
		return cause{kind: wrongEnvelope, mediaType: mediaType, shape: shape}
	case m.Status == 401 || m.Status == 403:
		return cause{kind: refusal, status: m.Status, code: code}
	case m.Status >= 400:
		return cause{kind: refusal, status: m.Status, code: code, expected: f.Expected}
	case m.Status >= 300:
		return cause{kind: redirect, status: m.Status}
	case m.Body != "" && mediaType != "application/json" && mediaType != "text/event-stream" && !strings.HasSuffix(mediaType, "+json"):
		return cause{kind: wrongType, mediaType: mediaType}
	case m.Body != "" && !valid && m.Truncated == 0 && mediaType != "text/event-stream":
		return cause{kind: invalidJSON}
	case f.Expected != "":
		return cause{kind: mismatch, status: m.Status, shape: shape, expected: f.Expected}
	}
	return own
}

// String is the cause in one line.
func (c cause) String() string {
	where := ""
	if c.expected != "" {
		where = " in place of " + c.expected
	}
	text := ""
	switch c.kind {
	case missingHeader:
		text = "a response without the header " + c.text
	case noResponse:
		text = "no response: " + c.text
	case serverError, mismatch:
		text = strings.Join(slices.DeleteFunc([]string{fmt.Sprint(c.status), c.mediaType, c.code, c.shape}, func(s string) bool { return s == "" }), " ") + where
	case wrongEnvelope:
		text = fmt.Sprintf("an error response of %s in place of {error: {code, message}}", strings.TrimSpace(c.mediaType+" "+c.shape))
	case refusal:
		text = fmt.Sprintf("%d %s", c.status, c.code) + where
	case redirect:
		text = fmt.Sprintf("%d, a redirect", c.status)
	case wrongType:
		text = "a response with Content-Type " + cmp.Or(c.mediaType, "missing")
	case invalidJSON:
		text = "a response with Content-Type application/json that is no JSON"
	default:
		text = c.text
	}
	return terminal.Line(text, 300)
}

// mediaTypeOf is the media type of a response without parameters; "" without one.
func mediaTypeOf(m Message) string {
	for name, value := range m.Header {
		if strings.EqualFold(name, "Content-Type") {
			mediaType, _, err := mime.ParseMediaType(value)
			if err != nil {
				return "malformed"
			}
			return mediaType
		}
	}
	return ""
}

// Bounds of a shape.
const (
	shapeDepth   = 2
	shapeMembers = 8
)

// shapeOf is the structure of a body without its values, and the code of the error in it. False: the body is no JSON, or
// the report has not all of it.
func shapeOf(m Message) (shape, code string, valid bool) {
	switch {
	case m.Body == "" && m.Truncated == 0:
		return "without a body", "", false
	case m.Truncated > 0:
		return "with a long body", "", false
	case m.Encoding != "":
		return "with a body that is no text", "", false
	}
	var body any
	if err := json.Unmarshal([]byte(m.Body), &body); err != nil {
		return "with a body that is no JSON", "", false
	}
	if object, ok := body.(map[string]any); ok {
		if inner, ok := object["error"].(map[string]any); ok {
			code, _ = inner["code"].(string)
		}
	}
	return kindOf(body, shapeDepth), code, true
}

// kindOf writes the kind of a JSON value; of an object its members, to a depth.
func kindOf(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "[…]"
	case map[string]any:
		if depth == 0 {
			return "{…}"
		}
		var members []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if len(members) == shapeMembers {
				members = append(members, "…")
				break
			}
			members = append(members, name+": "+kindOf(v[name], depth-1))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	return ""
}
