package reports

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// Group is the findings of all clauses that have one cause. A clause with findings of several causes is in several groups.
type Group struct {
	Cause    string   `json:"cause"`    // in one line
	Clauses  []string `json:"clauses"`  // in report order
	Failing  int      `json:"failing"`  // how many of them fail
	Findings int      `json:"findings"` // 0: the clauses have a message and no finding

	Severity Severity `json:"severity"`
	Clause   string   `json:"clause"`           // the one to read first: the cause's own if it is among them, else the gravest
	Remedy   string   `json:"remedy,omitempty"` // how to fix the cause

	kind    causeKind
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
	namedError                     // 5xx by which the bridge says what failed, such as the site
	redirect                       // 3xx
	wrongEnvelope                  // a 4xx without the error object of the contract
	refusal                        // a 4xx with it
	wrongStatus                    // an error under the status of another: a 2xx, or a missing tool that is not 404
	wrongType                      // a response whose Content-Type is missing or not JSON, though its body may be
	invalidJSON                    // a 2xx that says that it is JSON
	cutShort                       // a body that ends in the middle, with as many bytes as its Content-Length says
	errorAsResult                  // a 2xx where an error of the site's is due
	encodedTwice                   // a result that is a string with the JSON of the site's in it
	mismatch                       // a 2xx with other content than expected
	wrongAccount                   // a call ran at the site as another account than the caller's: by that account
	notForwarded                   // the site refused the bridge's requests, which had not the caller's credentials
	shared                         // a caller gets what is another's, and the site knows each by its own credentials
	exposed                        // a 2xx where the caller is to be refused
	byProxy                        // a proxy made the response: by what it does
	ended                          // the process of the bridge is gone: by how it ended
	noBridge                       // the target shows no sign of a bridge
)

// ToGoOn is what is expected of the process of a bridge that has ended by itself.
const ToGoOn = "to go on running"

// What a finding says of a body, where the exchange may have too little of it to show.
const (
	// EncodedTwice is of a result.
	EncodedTwice = "a string that holds the result as JSON: it was encoded twice"
)

// AtTheProxy is the remedy of what a proxy did in place of the bridge.
const AtTheProxy = "Change the configuration of the proxy: docs/behind-a-proxy.md has a complete one for each of five."

const forwardThem = "Send the caller's own credentials to the site with each request, the Authorization header (or cookie) as it came."

// causeKinds says what follows from the kind of a cause, whatever clauses have it. Kinds that are not here have the
// severity and the remedy of their gravest clause.
var causeKinds = map[causeKind]struct {
	severity Severity
	own      string // the clause that is about just this cause
	remedy   string
}{
	missingHeader: {Protocol, "", "Send the header with every response that the contract names, refusals and errors included."},
	noResponse: {Protocol, "", "The log of the bridge (bridge.log in the report directory, if run --exec started it) says why it closed the connection or did not respond. " +
		"Every request needs a response: the bridge must survive what it cannot serve."},
	serverError:   {Protocol, "", "The bridge fails by itself where another response is due. Its log has the error of that request; then test the clause again."},
	namedError:    {Protocol, "upstream/id-mismatch", "The bridge says that something failed where another response is due. Its log has the error of that request; then test the clause again."},
	ended:         {Execution, "", "The log of the bridge (bridge.log in the report directory) says why it ended. It must survive whatever a caller or the site sends."},
	redirect:      {Protocol, "", "Serve the paths of the contract themselves, without a redirect: clients do not send credentials or bodies again."},
	wrongEnvelope: {Protocol, "errors/envelope", `Make one function that writes every error as {"error": {"code": …, "message": …}} with Content-Type application/json, and use it in the handlers of the framework (404, 405, 500, bad body) as well.`},
	wrongStatus:   {Protocol, "errors/status-agrees", "Send the status that belongs to the error's code (400, 401, 403, 404, 5xx; tool_not_found: 404) with the body."},
	wrongType:     {Protocol, "list/answers-json", "Send Content-Type: application/json with every JSON body."},
	cutShort:      {Protocol, "list/answers-json", "Encode the body first, and send the number of its bytes as Content-Length, not that of its characters: é is two bytes in UTF-8. Or leave the header to the HTTP library."},
	errorAsResult: {Execution, "invoke/execution-error-500", "Check for `error` in the JSON-RPC response before `result`: HTTP 200 does not mean success."},
	encodedTwice:  {Execution, "invoke/result-exact", "Put the site's result into the response as the value that it is, and encode the whole body once."},
	invalidJSON:   {Protocol, "list/answers-json", "Write bodies with the JSON encoder alone: no output, warning or stack trace before or after."},
	wrongAccount:  {Exposure, "access/credentials-forwarded", forwardThem + " An account of the bridge's own may not run a caller's calls, and what one caller may see is no other's."},
	notForwarded:  {Exposure, "access/credentials-forwarded", forwardThem},
	shared: {Exposure, "access/no-cross-talk", "Put the caller's credentials into the key of each cache, and keep no caller in a variable that requests share. " +
		"A proxy in front may cache nothing: send Cache-Control: private, no-store."},
	exposed:  {Exposure, "", ""},
	byProxy:  {Protocol, "", AtTheProxy},
	noBridge: {Exposure, "list/answers-json", "Check the address (--url), what the bridge needs to reach its site, and the credentials of the agent: GET /mcp/tools/list has to respond with {\"tools\": …}."},
}

// Groups groups what a reader has to act on: the findings, which no baseline excuses, of clauses that fail, warn, end in an
// error or keep a MUST untested. Every finding is in exactly one group. The group that explains most failures is the first.
func (r *Report) Groups() []Group {
	if r.groups != nil {
		return r.groups
	}
	blocked := map[string]bool{}
	for _, result := range r.Blocked() {
		blocked[result.ID] = true
	}
	g := newGrouping(r)
	for i, result := range r.Results {
		if slices.Contains([]Verdict{Fail, Error, Fixed, Warn}, result.Verdict) || blocked[result.ID] {
			g.addResult(i)
		}
	}
	for i := range g.groups {
		g.groups[i].settle(r)
	}
	slices.SortStableFunc(g.groups, func(a, b Group) int {
		if n := cmp.Compare(min(b.Failing, 1), min(a.Failing, 1)); n != 0 { // what fails the run comes first
			return n
		}
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(b.Failing, a.Failing), cmp.Compare(len(b.Clauses), len(a.Clauses)))
	})
	return g.groups
}

// grouping is the groups of a report while they are made, and what the report as a whole says of causes.
type grouping struct {
	report   *Report
	groups   []Group
	at       map[cause]int // index of the group
	crossed  bool          // callers get what is another's, though each call has its caller's credentials
	account  cause         // of kind wrongAccount, where calls run as another account than the caller's
	forwards bool          // the site does not refuse the bridge's requests for want of credentials
	notFound bool          // the bridge does not respond with 404 to what is missing
}

func newGrouping(r *Report) *grouping {
	return &grouping{
		report: r, at: map[cause]int{},
		crossed:  r.crosses() && !r.fails("access/credentials-forwarded"),
		account:  r.firstCause(wrongAccount),
		forwards: r.firstCause(notForwarded).kind != notForwarded,
		notFound: r.fails("describe/unknown-404") || r.fails("invoke/unknown-404"),
	}
}

// addResult puts each finding of a result into the group of its cause.
func (g *grouping) addResult(i int) {
	result := g.report.Results[i]
	if len(result.Findings) == 0 {
		g.add(i, -1, g.ofReport(cause{kind: ofMessage, clause: string(result.Verdict), text: result.Message}))
		return
	}
	alike := map[cause]cause{} // the first of the result, by all but what was expected
	shown := cause{}           // the first that an exchange shows; those beside it, whose exchanges were left out, are most likely alike
	for j, f := range result.Findings {
		if f.KnownReason != "" {
			continue
		}
		why := result.causeOf(f)
		switch {
		case shown.kind == ofClause:
			shown = why
		case why.kind == ofClause && f.Request == nil:
			why = shown
		}
		why = g.ofReport(g.ofCaller(result, f, why))
		but := why
		but.expected = ""
		if first, met := alike[but]; met {
			why = first
		} else {
			alike[but] = why
		}
		g.add(i, j, why)
	}
}

// ofCaller returns the cause of a finding that comes of whose credentials the bridge uses, where that explains it.
func (g *grouping) ofCaller(result Result, f Finding, why cause) cause {
	exposes := func() bool { return result.exposes(f) }
	switch {
	case why.kind != wrongStatus && result.isUnrefused(f) && g.report.missesErrors():
		why = cause{kind: errorAsResult}
	case g.crossed && why.kind != wrongStatus && why.kind != errorAsResult && (why.kind == wrongAccount || result.Severity() == Exposure && (why.kind == ofClause || exposes())):
		why = cause{kind: shared}
	case g.account.kind == wrongAccount && exposes():
		why = g.account // the same fault runs the calls as another account and shows callers what that may see
	}
	if !g.forwards && why.kind == refusal && result.refusesCaller(f) {
		why = cause{kind: notForwarded} // the bridge remembers that the site refused it
	}
	return why
}

// ofReport returns the cause that other clauses of the report show, where that explains this one.
func (g *grouping) ofReport(why cause) cause {
	if g.notFound && why.kind == refusal && why.code == "tool_not_found" && why.status != 404 {
		why = cause{kind: wrongStatus, status: why.status, code: why.code} // of whatever is missing: nothing is exposed by it
	}
	if g.report.NoBridge != "" && (why.kind == ofClause || why.kind == ofMessage) {
		why = cause{kind: noBridge}
	}
	return why
}

// add puts a finding, by its place in the report, into the group of a cause.
func (g *grouping) add(result, finding int, why cause) {
	n, known := g.at[why]
	if !known {
		n = len(g.groups)
		g.at[why] = n
		g.groups = append(g.groups, Group{Cause: why.String(), kind: why.kind, Severity: Form})
	}
	group := &g.groups[n]
	group.members = append(group.members, member{result, finding})
	if finding >= 0 {
		group.Findings++
	}
	if r := g.report.Results[result]; !slices.Contains(group.Clauses, r.ID) {
		group.Clauses = append(group.Clauses, r.ID)
		if r.Verdict == Fail {
			group.Failing++
		}
	}
}

// settle finds the severity of g, the clause to read first and the remedy. What fails is graver than what does not.
func (g *Group) settle(r *Report) {
	kind, ofKind := causeKinds[g.kind]
	var first *Result
	rank := func(result *Result) int {
		n := 2*int(result.Severity()) + map[bool]int{true: 1}[result.Level != MUST]
		if g.kind == noBridge || g.kind == wrongStatus { // no clause says more than another: the first
			n = 0
		}
		if result.Verdict != Fail {
			n += 100
		}
		// Who is refused the list is refused all, and who is not known to the site, too.
		if result.ID == kind.own || g.kind == refusal && (result.ID == "list/answers-json" || result.ID == "access/credentials-forwarded") {
			n -= 50
		}
		return n
	}
	for _, m := range g.members {
		if result := &r.Results[m.result]; first == nil || rank(result) < rank(first) {
			first = result
		}
	}
	g.Clause, g.Remedy, g.Severity = first.ID, first.Remedy, first.Severity()
	if g.kind == namedError && len(g.Clauses) == 1 {
		ofKind = false // an error may be due, and the clause is about something else: that the method ran once
	}
	if g.kind == refusal && strings.HasPrefix(g.Cause, "401 ") && !slices.ContainsFunc(g.members, func(m member) bool {
		return m.finding < 0 || !r.Results[m.result].refusesCaller(r.Results[m.result].Findings[m.finding])
	}) {
		g.Remedy = forwardThem // it has not looked at them
	}
	if (g.kind == noResponse || g.kind == serverError) && len(g.Clauses) == 1 && first.Remedy != "" {
		kind.remedy = strings.TrimRight(first.Remedy, "\n") + "\n" + kind.remedy // the clause knows what is special in its requests
	}
	if ofKind {
		g.Severity = kind.severity
		if (g.Clause != kind.own || slices.Contains([]causeKind{noBridge, cutShort, encodedTwice}, g.kind)) && kind.remedy != "" {
			g.Remedy = kind.remedy
		}
		if g.kind == byProxy {
			g.Remedy = strings.TrimRight(g.Cause, ";") + ". " + g.Remedy // the one line to add, and where all of them are
		}
	}
}

// FirstCause is the gravest group. False: it does not explain two failures or more.
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

// crosses reports whether a caller gets what is another's, and not a refusal in another form.
func (r *Report) crosses() bool {
	result, ok := r.Result("access/no-cross-talk")
	misses := r.missesErrors()
	return ok && result.Verdict == Fail && slices.ContainsFunc(result.Findings, func(f Finding) bool {
		return !(misses && result.isUnrefused(f)) && slices.Contains([]causeKind{ofClause, mismatch, exposed, wrongAccount}, result.causeOf(f).kind)
	})
}

// missesErrors reports whether the bridge has a success for what is an error, whoever calls.
func (r *Report) missesErrors() bool {
	return r.fails("invoke/execution-error-500") || r.fails("invoke/unknown-404") || r.fails("describe/unknown-404")
}

// isUnrefused reports whether a finding is that calls beside others get a 2xx where an error is due: that alone shows nothing of another's.
func (r Result) isUnrefused(f Finding) bool {
	return r.ID == "access/no-cross-talk" && r.exposes(f) && errorDue.MatchString(f.Expected)
}

func (r *Report) fails(id string) bool {
	result, ok := r.Result(id)
	return ok && result.Verdict == Fail
}

// firstCause is the first cause of a kind that explains a failure; else the zero cause.
func (r *Report) firstCause(kind causeKind) cause {
	for _, result := range r.With(Fail) {
		for _, f := range result.Findings {
			if f.KnownReason != "" {
				continue
			}
			if c := result.causeOf(f); c.kind == kind {
				return c
			}
		}
	}
	return cause{}
}

// refusesCaller reports whether a finding is that a caller with credentials is refused where a clause asks for something else.
func (r Result) refusesCaller(f Finding) bool {
	e, ok := r.exchange(f)
	return ok && len(e.Credentials) > 0 && (e.Response.Status == 401 || e.Response.Status == 403) && !denies.MatchString(f.Expected)
}

// ranAs is the account, not that of the caller, as which a method ran at the site; "": there is none, or the report does not
// say who the caller is at the site. A call that was refused did not run: what ran beside it is another caller's.
func (e Exchange) ranAs() string {
	if e.Response == nil || e.Response.Status/100 != 2 {
		return ""
	}
	caller := "anonymous"
	if len(e.Credentials) > 0 {
		caller = e.Credentials[0].User
	}
	other := ""
	for _, up := range e.Drupal {
		if !up.Ran || up.Method == "" {
			continue
		}
		user := cmp.Or(up.User, "anonymous")
		if caller == "" || user == caller { // the other calls are then those of callers beside this one
			return ""
		}
		other = user
	}
	return other
}

// unidentified reports whether the site refused all that the bridge sent it for a caller with credentials, and knew that caller in none of it.
func (e Exchange) unidentified() bool {
	return len(e.Credentials) > 0 && len(e.Drupal) > 0 && !slices.ContainsFunc(e.Drupal, func(up Upstream) bool {
		return up.User == e.Credentials[0].User || up.Status != 401 && up.Status != 403
	})
}

// exposes reports whether a finding is that a caller gets a 2xx where a clause of exposure asks for something else.
func (r Result) exposes(f Finding) bool {
	e, ok := r.exchange(f)
	return ok && r.Severity() == Exposure && e.Response != nil && e.Response.Status/100 == 2
}

// denies matches what is expected where the caller is to be refused.
var denies = regexp.MustCompile(`\b40[134]\b|refusal`)

// errorDue matches what is expected where a response is to be an error.
var errorDue = regexp.MustCompile(`^(an error|a refusal|[45]\d\d\b|a 4xx)`)

// envelopeDue matches what is expected where the error is to have the form of the contract and may be a 5xx.
var envelopeDue = regexp.MustCompile(`\b5\d\d\b|envelope|\{"error"`)

// causeOf classifies a finding of r.
func (r Result) causeOf(f Finding) cause {
	own := cause{kind: ofClause, clause: r.ID, text: r.Message}
	if f.Proxy != "" {
		return cause{kind: byProxy, text: f.Proxy}
	}
	if f.Expected == ToGoOn {
		how, _, _ := strings.Cut(f.Actual, "; ") // what it printed has times
		return cause{kind: ended, text: strings.Replace(how, "it", "the bridge", 1)}
	}
	e, ok := r.exchange(f)
	if !ok {
		if f.Expected != "" {
			own.expected = f.Expected
		}
		return own
	}
	if account := e.ranAs(); account != "" {
		return cause{kind: wrongAccount, text: account}
	}
	if f.Missing == "" && f.Expected != "" && !denies.MatchString(f.Expected) && e.unidentified() {
		return cause{kind: notForwarded}
	}
	switch {
	case e.Response != nil:
	case strings.Contains(e.Error, "context canceled"): // the check went away itself
		return own
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
	_, encoded := header(m, "Content-Encoding")
	mediaType := mediaTypeOf(m)
	byMCP := strings.HasSuffix(e.Request.URL, "/mcp") // whose errors have the form of JSON-RPC
	malformed := ""
	if !byMCP {
		malformed = codeFault(m)
	}
	switch {
	case m.Status/100 == 2 && holdsRPCError(m) && (errorDue.MatchString(f.Expected) || strings.HasPrefix(f.Expected, "not to contain")):
		return cause{kind: errorAsResult}
	case strings.HasPrefix(f.Expected, "not to contain"): // what a text leaks, the status has nothing to do with
		own.expected = f.Expected
		return own
	case strings.Contains(f.Actual, exact.EndsInTheMiddle) || endsAtLength(m):
		return cause{kind: cutShort}
	case strings.Contains(f.Actual, "Content-Type") && isObject(m) && !isJSONType(mediaType): // a body that is right otherwise
		return cause{kind: wrongType, mediaType: mediaType}
	case m.Status >= 400 && malformed != "" && (m.Status < 500 || envelopeDue.MatchString(f.Expected)):
		return cause{kind: wrongEnvelope, text: malformed}
	case m.Status >= 500 && code != "" && code != "internal_error":
		return cause{kind: namedError, status: m.Status, code: code}
	case m.Status >= 500:
		return cause{kind: serverError, status: m.Status, mediaType: mediaType, shape: shape, code: code}
	case m.Status >= 400 && code == "" && !byMCP:
		return cause{kind: wrongEnvelope, mediaType: mediaType, shape: shape}
	case m.Status == 401 || m.Status == 403:
		return cause{kind: refusal, status: m.Status, code: code}
	case m.Status >= 400:
		return cause{kind: refusal, status: m.Status, code: code, expected: f.Expected}
	case m.Status == 304: // which says that nothing changed
		return own
	case m.Status >= 300:
		return cause{kind: redirect, status: m.Status}
	case code != "" || !byMCP && isError(m):
		return cause{kind: wrongStatus, status: m.Status}
	case strings.Contains(f.Actual, EncodedTwice):
		return cause{kind: encodedTwice}
	case errorDue.MatchString(f.Expected) && r.ID == "invoke/execution-error-500":
		return cause{kind: errorAsResult}
	case r.exposes(f) && r.Area != "mcp" && denies.MatchString(f.Expected):
		return cause{kind: exposed}
	case m.Body != "" && !isJSONType(mediaType):
		return cause{kind: wrongType, mediaType: mediaType}
	case m.Body != "" && !valid && m.Truncated == 0 && mediaType != "text/event-stream" && !encoded:
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
		text = "error responses in which " + c.text
		if c.text != "" {
			break
		}
		text = fmt.Sprintf("error responses without {error: {code, message}}: %s", strings.TrimSpace(c.mediaType+" "+c.shape))
	case wrongStatus:
		text = fmt.Sprintf("%s with the status %d", cmp.Or(c.code, "errors"), c.status)
	case wrongAccount:
		text = "calls run at the site as the account " + c.text + ", which is not their caller's"
	case notForwarded:
		text = "requests reach the site without their caller's credentials"
	case noBridge:
		text = "the target shows no sign of a bridge"
	case shared:
		text = "callers get what is another caller's: a cache or a variable that they share"
	case exposed:
		text = "callers get what the site denies them"
	case refusal:
		text = fmt.Sprintf("%d %s", c.status, c.code) + where
	case namedError:
		text = fmt.Sprintf("%d %s", c.status, c.code)
	case redirect:
		text = fmt.Sprintf("%d, a redirect", c.status)
	case wrongType:
		text = "a response with Content-Type " + cmp.Or(c.mediaType, "missing")
	case cutShort:
		text = "bodies that end in the middle, at their Content-Length"
	case errorAsResult:
		text = "errors of the site that callers get as results"
	case encodedTwice:
		text = "results that were encoded twice: a string that holds the JSON"
	case invalidJSON:
		text = "a response with Content-Type application/json that is no JSON"
	default:
		text = c.text
	}
	return terminal.Line(text, 300)
}

// mediaTypeOf is the media type of a response without parameters; "" without one.
func mediaTypeOf(m Message) string {
	value, there := header(m, "Content-Type")
	if !there {
		return ""
	}
	mediaType, _, err := mime.ParseMediaType(value)
	if err != nil {
		return "malformed"
	}
	return mediaType
}

// header is a header of a message, however its name is written.
func header(m Message, name string) (value string, there bool) {
	for key, value := range m.Header {
		if strings.EqualFold(key, name) {
			return value, true
		}
	}
	return "", false
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

// isJSONType reports whether a media type is of JSON, or of a stream that holds some.
func isJSONType(mediaType string) bool {
	return mediaType == "application/json" || mediaType == "text/event-stream" || strings.HasSuffix(mediaType, "+json")
}

func isObject(m Message) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(m.Body), &object) == nil && object != nil
}

// endsAtLength reports whether the number of a body's characters was sent as the number of its bytes.
func endsAtLength(m Message) bool {
	length, _ := header(m, "Content-Length")
	body := []byte(m.Body)
	if m.Encoding == "base64" { // it ends within a character
		body, _ = base64.StdEncoding.DecodeString(m.Body)
	}
	return m.Truncated == 0 && exact.CountsCharacters(body, length)
}

// holdsRPCError reports whether the result in a body is an error of JSON-RPC and nothing else.
func holdsRPCError(m Message) bool {
	var body struct {
		Result struct {
			Code    *int64
			Message *string
			Data    json.RawMessage
		}
	}
	decoder := json.NewDecoder(strings.NewReader(m.Body))
	decoder.DisallowUnknownFields()
	return decoder.Decode(&body) == nil && body.Result.Code != nil && body.Result.Message != nil
}

// codeFault says what is wrong with the code of the error object in a body; "": nothing, or there is no such object.
func codeFault(m Message) string {
	var body struct{ Error map[string]any }
	if json.Unmarshal([]byte(m.Body), &body) != nil || body.Error == nil {
		return ""
	}
	value, there := body.Error["code"]
	switch text, ok := value.(string); {
	case !there:
		return "error.code is missing"
	case !ok:
		return "error.code is " + strings.TrimPrefix(kindOf(value, 0), "with ") + ", which must be a string"
	case text == "":
		return "error.code is empty"
	}
	return ""
}

// isError reports whether a body is an error and nothing else, in whatever form.
func isError(m Message) bool {
	var body map[string]json.RawMessage
	if json.Unmarshal([]byte(m.Body), &body) != nil {
		return false
	}
	_, is := body["error"]
	for _, good := range []string{"tools", "tool", "result"} {
		_, has := body[good]
		is = is && !has
	}
	return is
}

// kindOf says what a JSON value is; of an object the names of its members, and of those to a depth.
func kindOf(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "with null"
	case bool:
		return "with a boolean"
	case float64:
		return "with a number"
	case string:
		return "with a text"
	case []any:
		return "with a list"
	case map[string]any:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if len(members) == shapeMembers {
				members = append(members, "…")
				break
			}
			if inner, ok := v[name].(map[string]any); ok && depth > 1 {
				name += " (" + kindOf(inner, depth-1) + ")"
			}
			members = append(members, name)
		}
		if len(members) == 0 {
			return "with {}"
		}
		return "with " + strings.Join(members, ", ")
	}
	return ""
}
