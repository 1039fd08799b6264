package fault

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/port"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// Kinds of faults, for Fault.Kind.
const (
	Delay         = "delay"
	DelayBody     = "delay-body"
	Drip          = "drip"
	Hang          = "hang"
	HangBody      = "hang-body"
	ResetEarly    = "reset-early"
	Reset         = "reset"
	Close         = "close"
	CloseIdle     = "close-idle"
	Cut           = "cut"
	CutChunks     = "cut-chunks"
	LengthLong    = "length-long"
	LengthShort   = "length-short"
	Status        = "status"
	HTML          = "html"
	Empty         = "empty"
	ContentType   = "content-type"
	Garbage       = "garbage"
	Trailing      = "trailing"
	Leading       = "leading"
	InvalidUTF8   = "invalid-utf8"
	BOM           = "bom"
	Duplicate     = "duplicate-members"
	WrongID       = "wrong-id"
	TrueID        = "true-id"
	MissingID     = "missing-id"
	NullID        = "null-id"
	IDType        = "id-type"
	Both          = "result-and-error"
	NullError     = "null-error"
	Neither       = "neither"
	Batch         = "batch"
	Result        = "result"
	NotJSON       = "result-not-json"
	Excess        = "excess"
	Failure       = "error"
	Echo          = "echo"
	Huge          = "huge"
	HugeMembers   = "huge-members"
	HugeGzip      = "huge-gzip"
	Gzip          = "broken-gzip"
	Redirect      = "redirect"
	SetCookie     = "set-cookie"
	Stale         = "stale-discovery"
	NullSchema    = "poison-null-schema"
	ListNotes     = "poison-list-annotations"
	CyclicRef     = "poison-cyclic-ref"
	RemoteRef     = "poison-remote-ref"
	DeepSchema    = "poison-deep-schema"
	DuplicateTool = "poison-duplicate-id"
	Refuse        = "refuse"
	Deaf          = "deaf"
)

// notice is what PHP writes into a response where display_errors is on.
const notice = "\n<br />\n<b>Notice</b>: Undefined variable in <b>/index.php</b> on line <b>1</b><br />\n"

// moment is when a fault acts.
type moment int

const (
	afterBody  moment = iota // once the request has been read
	beforeBody               // before the request's body is read
	onPort                   // from arming to disarming, whatever is requested
)

// kind is all there is to say about a kind of fault.
type kind struct {
	text  string                                       // what it does, for people; defaults in parentheses
	acts  moment                                       // when
	only  string                                       // the one route that it makes sense on; "": any
	runs  bool                                         // the site responds first, so the method runs
	needs func(Fault) error                            // which of its fields must be given; nil: none
	arm   func(a *armed, m Machine, over func()) error // takes from the machine what the kind needs, or says what that lacks; nil: nothing. It calls over when the fault ends by itself
	act   func(*action)                                // changes the response, or sends it; nil for a fault on the port
}

// Kind describes a kind of fault to people.
type Kind struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Runs bool   `json:"runs"` // the method runs although nothing of it may be seen
	Call bool   `json:"-"`    // it may be for calls of a method alone
}

// Kinds lists all kinds of faults, by name.
func Kinds() []Kind {
	list := make([]Kind, 0, len(kinds))
	for name, k := range kinds {
		list = append(list, Kind{name, k.text, k.runs, k.acts == afterBody})
	}
	slices.SortFunc(list, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func names() []string {
	list := []string{}
	for _, k := range Kinds() {
		list = append(list, k.Name)
	}
	return list
}

// kinds says everything about every kind.
var kinds = map[string]kind{
	Delay:       {text: "waits before the headers", runs: true, needs: aDelay, act: func(v *action) { v.Done = !v.pause(v.fault.Delay) }},
	DelayBody:   {text: "sends the headers and half the body, waits, sends the rest", runs: true, needs: aDelay, act: delayBody},
	Drip:        {text: "sends the body byte by byte, with a pause before each", runs: true, needs: aDelay, act: drip},
	Hang:        {text: "reads the request and never responds", act: hang},
	HangBody:    {text: "sends the headers (under a status of choice) and half the body and nothing more", runs: true, act: hangBody},
	ResetEarly:  {text: "resets the connection before the body is read", acts: beforeBody, act: func(v *action) { v.Reset() }},
	Reset:       {text: "reads the request, then resets the connection", act: func(v *action) { v.Reset() }},
	Close:       {text: "reads the request, then closes the connection in good order, without a response", act: func(v *action) { v.Close() }},
	CloseIdle:   {text: "sends the response, and closes the connection without having said so", runs: true, act: func(v *action) { v.SendAndClose() }},
	Cut:         {text: "sends half the body and closes the connection", runs: true, act: cut},
	CutChunks:   {text: "sends the body in chunks, and closes the connection before the last, empty one", runs: true, act: func(v *action) { v.SendUnended() }},
	LengthLong:  {text: "announces a longer body than it sends", runs: true, act: func(v *action) { v.SendRaw(len(v.Response.Body) + 64) }},
	LengthShort: {text: "announces a shorter body than it sends", runs: true, act: func(v *action) { v.SendRaw(len(v.Response.Body) / 2) }},
	Status: {text: "responds with a status (500), a body and a content type of choice; run and no body: the site's own response under that " +
		"status; 429 and 503 with Retry-After", act: status},
	HTML:          {text: "responds with an HTML page (200)", act: htmlPage},
	Empty:         {text: "responds with a status (200) and no body", act: empty},
	ContentType:   {text: "sends the response under a wrong Content-Type (text/plain)", runs: true, act: contentType},
	Garbage:       {text: "sends a body that is no JSON", runs: true, act: rewrite(func([]byte) []byte { return []byte(`{"jsonrpc":"2.0","id":1,"result":`) })},
	Trailing:      {text: "sends a PHP notice behind the body", runs: true, act: rewrite(func(b []byte) []byte { return append(b, notice...) })},
	Leading:       {text: "sends a PHP notice before the body", runs: true, act: rewrite(func(b []byte) []byte { return append([]byte(notice), b...) })},
	InvalidUTF8:   {text: "puts bytes that are no UTF-8 into the body's last string, or behind it", runs: true, act: rewrite(invalidUTF8)},
	BOM:           {text: "puts a byte order mark before the body", runs: true, act: rewrite(func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) })},
	Duplicate:     {text: "sends every member of the response object twice", runs: true, act: members(func(m []php.Member) []php.Member { return append(m, m...) })},
	WrongID:       {text: "responds with another request's id", runs: true, only: route.JSONRPC, act: members(withID(wrongID))},
	MissingID:     {text: "leaves the id out", runs: true, only: route.JSONRPC, act: members(without("id"))},
	NullID:        {text: "responds with id null", runs: true, only: route.JSONRPC, act: members(withID(is("null")))},
	TrueID:        {text: "responds with id true, which some languages take for equal to any other", runs: true, only: route.JSONRPC, act: members(withID(is("true")))},
	IDType:        {text: "responds with a string for a number, a number for a string", runs: true, only: route.JSONRPC, act: members(withID(otherType))},
	Both:          {text: "sends result and error together", runs: true, only: route.JSONRPC, act: members(both)},
	NullError:     {text: "sends error null beside the result, as JSON-RPC 1 does", runs: true, only: route.JSONRPC, act: members(func(m []php.Member) []php.Member { return append(m, php.Member{Name: "error", Raw: []byte("null")}) })},
	Neither:       {text: "sends neither result nor error", runs: true, only: route.JSONRPC, act: members(without("result", "error"))},
	Batch:         {text: "sends a list for a single response and a single response for a list", runs: true, only: route.JSONRPC, act: rewrite(batchForSingle)},
	Result:        {text: "responds to a call with a result of choice (body), and runs nothing", only: route.JSONRPC, needs: aJSONBody, act: inPlace("result", chosenBody)},
	NotJSON:       {text: "responds to a call with a result of choice (body), JSON or not, and runs nothing", only: route.JSONRPC, act: inPlace("result", chosenBody)},
	Excess:        {text: "sends another response behind the body, as if the next request had come", runs: true, only: route.JSONRPC, act: excess},
	Failure:       {text: "responds to a call with a JSON-RPC error of choice (body) under a status (200), and runs nothing", only: route.JSONRPC, needs: aJSONBody, act: inPlace("error", chosenBody)},
	Echo:          {text: "responds to a call with its own params as the result, and runs nothing", only: route.JSONRPC, act: inPlace("result", paramsOf)},
	Huge:          {text: "sends a valid response of many bytes (256 MiB): one long string", act: func(v *action) { v.oversize(&longString{digits()}) }},
	HugeMembers:   {text: "sends a valid response of many bytes (256 MiB): an object of many small members", act: func(v *action) { v.oversize(&manyMembers{}) }},
	HugeGzip:      {text: "sends a valid response of many bytes (256 MiB before compression): one long string, to clients that accept gzip one that compresses to a thousandth", act: hugeGzip},
	SetCookie:     {text: "sends the site's own response with a further Set-Cookie header (cookie)", runs: true, needs: aCookie, act: setCookie},
	Gzip:          {text: "announces gzip and sends a broken stream", runs: true, act: brokenGzip},
	Redirect:      {text: "redirects (302) to another host", act: redirect},
	Stale:         {text: "shows the site as it was when the fault was armed; before a real site, what discovery showed the caller last", runs: true, arm: rememberSite, act: func(*action) {}},
	NullSchema:    {text: "adds a method with null schemas to the collection", runs: true, only: route.Methods, act: poison(`"attributes":{"usage":"Poisoned","params":{"p":{"type":"JsonRpcParameterDefinition","id":"p","attributes":{"schema":null},"schema":null}},"output":null,"mcpTool":{}}`)},
	ListNotes:     {text: "adds a method whose annotations are a list", runs: true, only: route.Methods, act: poison(`"attributes":{"usage":"Poisoned","mcpTool":{"title":"Poisoned","annotations":["a","b"]}}`)},
	CyclicRef:     {text: "adds a method whose schema refers to itself", runs: true, only: route.Methods, act: poison(poisonedParam(`{"$ref":"#"}`))},
	RemoteRef:     {text: "adds methods whose schemas refer to another host (location), and a link to a further page there", runs: true, only: route.Methods, act: remoteRef},
	DeepSchema:    {text: "adds a method whose schema is nested 5,000 deep", runs: true, only: route.Methods, act: poison(poisonedParam(strings.Repeat(`{"type":"array","items":`, 5000) + `{}` + strings.Repeat(`}`, 5000)))},
	DuplicateTool: {text: "repeats the first method of the collection at its end", runs: true, only: route.Methods, act: rewrite(duplicateFirst)},
	Refuse:        {text: "refuses connections for a while (delay); the mock must listen by itself", acts: onPort, needs: aDelay, arm: onThePort((*port.Port).Refuse)},
	Deaf:          {text: "lets connecting clients time out for a while (delay); the mock must listen by itself, on a system that allows it", acts: onPort, needs: aDelay, arm: onThePort((*port.Port).Ignore)},
}

func aDelay(f Fault) error {
	if f.Delay == 0 {
		return errors.New("needs a delay")
	}
	return nil
}

func aCookie(f Fault) error {
	if _, err := http.ParseSetCookie(f.Cookie); err != nil {
		return errors.New(`needs a cookie, such as "NAME=VALUE; Path=/"`)
	}
	return nil
}

// rememberSite is for a fault that responds from the site's state at the time when it was armed.
func rememberSite(a *armed, m Machine, _ func()) (err error) {
	a.past, err = m.State()
	return err
}

// onThePort arms a fault of the port itself, which ends when the port is open again.
func onThePort(act func(p *port.Port, delay time.Duration, over func()) error) func(a *armed, m Machine, over func()) error {
	return func(a *armed, m Machine, over func()) error {
		p, err := m.Port()
		if err != nil {
			return err
		}
		a.end = p.Open
		return act(p, a.Delay, over)
	}
}
