package mockdrupal

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Kinds of faults, for Fault.Kind.
const (
	FaultDelay         = "delay"
	FaultDelayBody     = "delay-body"
	FaultDrip          = "drip"
	FaultHang          = "hang"
	FaultHangBody      = "hang-body"
	FaultResetEarly    = "reset-early"
	FaultReset         = "reset"
	FaultClose         = "close"
	FaultCut           = "cut"
	FaultLengthLong    = "length-long"
	FaultLengthShort   = "length-short"
	FaultStatus        = "status"
	FaultHTML          = "html"
	FaultEmpty         = "empty"
	FaultContentType   = "content-type"
	FaultGarbage       = "garbage"
	FaultTrailing      = "trailing"
	FaultInvalidUTF8   = "invalid-utf8"
	FaultBOM           = "bom"
	FaultDuplicate     = "duplicate-members"
	FaultWrongID       = "wrong-id"
	FaultMissingID     = "missing-id"
	FaultNullID        = "null-id"
	FaultIDType        = "id-type"
	FaultBoth          = "result-and-error"
	FaultNeither       = "neither"
	FaultBatch         = "batch"
	FaultHuge          = "huge"
	FaultGzip          = "broken-gzip"
	FaultRedirect      = "redirect"
	FaultStale         = "stale-discovery"
	FaultNullSchema    = "poison-null-schema"
	FaultListNotes     = "poison-list-annotations"
	FaultCyclicRef     = "poison-cyclic-ref"
	FaultRemoteRef     = "poison-remote-ref"
	FaultDeepSchema    = "poison-deep-schema"
	FaultDuplicateTool = "poison-duplicate-id"
	FaultRefuse        = "refuse"
	FaultDeaf          = "deaf"
)

// faultKind is what a kind of fault does.
type faultKind struct {
	text       string
	early      bool // before the request's body is read
	runs       bool // the site makes its answer first, so the method runs
	needsDelay bool
	only       string // the one route that it makes sense on; "": any
	act        func(*delivery)
}

// FaultKind describes a kind of fault to people.
type FaultKind struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Runs bool   `json:"runs"` // the method runs although nothing of it may be seen
}

// FaultKinds lists all kinds of faults, by name.
func FaultKinds() []FaultKind {
	kinds := make([]FaultKind, 0, len(faultKinds))
	for name, k := range faultKinds {
		kinds = append(kinds, FaultKind{name, k.text, k.runs})
	}
	slices.SortFunc(kinds, func(a, b FaultKind) int { return strings.Compare(a.Name, b.Name) })
	return kinds
}

// FaultNames lists the names of all kinds of faults, in order.
func FaultNames() []string {
	names := []string{}
	for _, k := range FaultKinds() {
		names = append(names, k.Name)
	}
	return names
}

// faultKinds says what every kind does.
var faultKinds = map[string]faultKind{
	FaultDelay:       {text: "waits before the headers", runs: true, needsDelay: true, act: func(v *delivery) { v.aborts(!v.pause(v.fault.Delay)) }},
	FaultDelayBody:   {text: "sends the headers and half the body, waits, sends the rest", runs: true, needsDelay: true, act: delayBody},
	FaultDrip:        {text: "sends the body byte by byte, with a pause before each", runs: true, needsDelay: true, act: drip},
	FaultHang:        {text: "reads the request and never answers", act: hang},
	FaultHangBody:    {text: "sends the headers and half the body and nothing more", runs: true, act: hangBody},
	FaultResetEarly:  {text: "resets the connection before the body is read", early: true, act: (*delivery).reset},
	FaultReset:       {text: "reads the request, then resets the connection", act: (*delivery).reset},
	FaultClose:       {text: "reads the request, then closes the connection in good order, without an answer", act: (*delivery).close},
	FaultCut:         {text: "sends half the body and closes the connection", runs: true, act: cut},
	FaultLengthLong:  {text: "announces a longer body than it sends", runs: true, act: func(v *delivery) { v.raw(len(v.answer.body) + 64) }},
	FaultLengthShort: {text: "announces a shorter body than it sends", runs: true, act: func(v *delivery) { v.raw(len(v.answer.body) / 2) }},
	FaultStatus:      {text: "answers with a status (500), a body and a content type of choice; run and no body: the site's own answer under that status", act: status},
	FaultHTML:        {text: "answers with an HTML page (200)", act: htmlPage},
	FaultEmpty:       {text: "answers with a status (200) and no body", act: empty},
	FaultContentType: {text: "sends the answer under a wrong Content-Type (text/plain)", runs: true, act: contentType},
	FaultGarbage:     {text: "sends a body that is no JSON", runs: true, act: bend(func([]byte) []byte { return []byte(`{"jsonrpc":"2.0","id":1,"result":`) })},
	FaultTrailing: {text: "sends a PHP notice behind the body", runs: true, act: bend(func(b []byte) []byte {
		return append(b, "\n<br />\n<b>Notice</b>: Undefined variable in <b>/index.php</b> on line <b>1</b><br />\n"...)
	})},
	FaultInvalidUTF8:   {text: "puts bytes that are no UTF-8 into the body's last string, or behind it", runs: true, act: bend(invalidUTF8)},
	FaultBOM:           {text: "puts a byte order mark before the body", runs: true, act: bend(func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) })},
	FaultDuplicate:     {text: "sends every member of the response object twice", runs: true, act: members(func(m []php.Member) []php.Member { return append(m, m...) })},
	FaultWrongID:       {text: "answers with another request's id", runs: true, only: RouteJSONRPC, act: members(withID(wrongID))},
	FaultMissingID:     {text: "leaves the id out", runs: true, only: RouteJSONRPC, act: members(without("id"))},
	FaultNullID:        {text: "answers with id null", runs: true, only: RouteJSONRPC, act: members(withID(func([]byte) []byte { return []byte("null") }))},
	FaultIDType:        {text: "answers with a string for a number, a number for a string", runs: true, only: RouteJSONRPC, act: members(withID(otherType))},
	FaultBoth:          {text: "sends result and error together", runs: true, only: RouteJSONRPC, act: members(both)},
	FaultNeither:       {text: "sends neither result nor error", runs: true, only: RouteJSONRPC, act: members(without("result", "error"))},
	FaultBatch:         {text: "sends a list for a single response and a single response for a list", runs: true, only: RouteJSONRPC, act: bend(batchForSingle)},
	FaultHuge:          {text: "streams a result of many bytes (256 MiB)", act: huge},
	FaultGzip:          {text: "announces gzip and sends a broken stream", runs: true, act: brokenGzip},
	FaultRedirect:      {text: "redirects (302) to another host", act: redirect},
	FaultStale:         {text: "shows the site as it was when the fault was armed", runs: true, act: func(*delivery) {}},
	FaultNullSchema:    {text: "adds a method with null schemas to the collection", runs: true, only: RouteMethods, act: poison(`"attributes":{"usage":"Poisoned","params":{"p":{"type":"JsonRpcParameterDefinition","id":"p","attributes":{"schema":null},"schema":null}},"output":null,"mcpTool":{}}`)},
	FaultListNotes:     {text: "adds a method whose annotations are a list", runs: true, only: RouteMethods, act: poison(`"attributes":{"usage":"Poisoned","mcpTool":{"title":"Poisoned","annotations":["a","b"]}}`)},
	FaultCyclicRef:     {text: "adds a method whose schema refers to itself", runs: true, only: RouteMethods, act: poison(poisonedParam(`{"$ref":"#"}`))},
	FaultRemoteRef:     {text: "adds a method whose schema refers to another host (location)", runs: true, only: RouteMethods, act: remoteRef},
	FaultDeepSchema:    {text: "adds a method whose schema is nested 5,000 deep", runs: true, only: RouteMethods, act: poison(poisonedParam(strings.Repeat(`{"type":"array","items":`, 5000) + `{}` + strings.Repeat(`}`, 5000)))},
	FaultDuplicateTool: {text: "repeats the first method of the collection at its end", runs: true, only: RouteMethods, act: bend(duplicateFirst)},
	FaultRefuse:        {text: "refuses connections for a while (delay); the mock must listen by itself", early: true, needsDelay: true, act: func(*delivery) {}},
	FaultDeaf:          {text: "leaves who connects without an answer for a while (delay); the mock must listen by itself, on a system that lets it", early: true, needsDelay: true, act: func(*delivery) {}},
}

// aborts ends the exchange without an answer when the caller has gone.
func (v *delivery) aborts(gone bool) {
	if gone {
		v.handled = true
	}
}

func delayBody(v *delivery) {
	half := len(v.answer.body) / 2
	v.handled = true
	v.head()
	v.body(v.answer.body[:half])
	v.flush()
	if v.pause(v.fault.Delay) {
		v.body(v.answer.body[half:])
	}
}

func drip(v *delivery) {
	v.handled = true
	v.head()
	v.flush()
	for i := range v.answer.body {
		if !v.pause(v.fault.Delay) {
			return
		}
		v.body(v.answer.body[i : i+1])
		v.flush()
	}
}

func hang(v *delivery) {
	v.handled = true
	if v.pause(0) {
		v.drop()
	}
}

func hangBody(v *delivery) {
	v.handled = true
	v.head()
	v.body(v.answer.body[:len(v.answer.body)/2])
	v.flush()
	if v.pause(0) {
		v.drop()
	}
}

func cut(v *delivery) {
	whole := len(v.answer.body)
	v.answer.body = v.answer.body[:whole/2]
	v.raw(whole)
}

// status sends a body of choice under a status of choice; with Run and no Body it is the site's own answer under that
// status.
func status(v *delivery) {
	code := cmp.Or(v.fault.Status, http.StatusInternalServerError)
	if v.answer != nil && v.fault.Body == "" {
		v.answer.status = code
		return
	}
	kind := v.fault.ContentType
	if kind == "" {
		kind = typeJSON
	}
	v.answer = newAnswer(code, kind, []byte(v.fault.Body))
}

func htmlPage(v *delivery) {
	code := cmp.Or(v.fault.Status, http.StatusOK)
	v.answer = page(code, "Error | "+v.x.state.site.Title)
	if v.fault.Body != "" {
		v.answer.body = []byte(v.fault.Body)
	}
}

func empty(v *delivery) {
	code := cmp.Or(v.fault.Status, http.StatusOK)
	v.answer = newAnswer(code, typeJSON, nil)
}

func contentType(v *delivery) {
	v.answer.header.Set("Content-Type", cmp.Or(v.fault.ContentType, typeText))
}

// hugeBytes is what huge sends unless told otherwise.
const hugeBytes = 256 << 20

func huge(v *delivery) {
	size := cmp.Or(v.fault.Size, hugeBytes)
	v.handled = true
	v.answer = newAnswer(http.StatusOK, typeJSON, nil)
	v.answer.header.Set("Transfer-Encoding", "identity") // no length: sent in chunks
	id := "null"
	if calls := v.x.sketches(); len(calls) > 0 && calls[0].ID != nil {
		id = string(calls[0].ID)
	}
	v.stream(`{"jsonrpc":"2.0","id":`+id+`,"result":"`, size, `"}`)
}

// stream sends filling between two texts, in blocks, without holding it.
func (v *delivery) stream(head string, size int64, tail string) {
	for name, values := range v.answer.header {
		if name != "Transfer-Encoding" {
			v.w.Header()[name] = values
		}
	}
	v.x.note(func(e *Entry) { e.Status = v.answer.status })
	v.w.WriteHeader(v.answer.status)
	block := bytes.Repeat([]byte("x"), 64<<10)
	v.body([]byte(head))
	for size -= int64(len(head) + len(tail)); size > 0; size -= int64(len(block)) {
		block = block[:min(int64(len(block)), size)]
		n, err := v.w.Write(block)
		v.x.note(func(e *Entry) { e.BytesOut += int64(n) })
		if err != nil {
			return
		}
	}
	v.body([]byte(tail))
}

func brokenGzip(v *delivery) {
	v.answer.header.Set("Content-Encoding", "gzip")
	v.answer.body = append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, "this is no deflate stream"...)
}

// elsewhere is a host that is not the site's; .invalid never resolves.
const elsewhere = "http://elsewhere.invalid/"

func redirect(v *delivery) {
	to := cmp.Or(v.fault.Location, elsewhere)
	code := cmp.Or(v.fault.Status, http.StatusFound)
	v.answer = page(code, "Redirecting to "+to)
	v.answer.header.Set("Location", to)
}

// bend changes the body of the site's own answer.
func bend(change func([]byte) []byte) func(*delivery) {
	return func(v *delivery) {
		if v.answer != nil {
			v.answer.body = change(slices.Clone(v.answer.body))
		}
	}
}
