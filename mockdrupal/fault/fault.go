// Package fault is what a site can do wrong on demand: slow, broken, hostile and oversized responses, and a port that
// accepts nothing. One entry of the table in kinds.go says everything about a kind. It is no chaos tool: a fault acts
// exactly where its fields say, and the journal names it in every entry that it touched.
//
// Its invariant: a fault that was armed can match something on this site; one that cannot is an error. A Set arms faults;
// for every request a recorder takes the first that matches, and the fault changes the exchange's response or sends it.
package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Fault is a misbehaviour to arm. Kind says what happens (see Kinds), the matching fields when, the others how. Zero
// matching fields match everything.
type Fault struct {
	Kind string `json:"kind"`

	Route       string  `json:"route,omitempty"`       // jsonrpc, methods, method, login, …
	Method      string  `json:"method,omitempty"`      // path.Match pattern for the id of a JSON-RPC call in the request
	User        string  `json:"user,omitempty"`        // the account's name; "anonymous"
	Count       int     `json:"count,omitempty"`       // how many requests it acts on; 0: until disarmed
	Probability float64 `json:"probability,omitempty"` // of acting on a request that matches; 0: 1
	Seed        uint64  `json:"seed,omitempty"`        // of the probability's random numbers

	Run         bool          `json:"run,omitempty"`          // run the method, then misbehave, also where the kind would not run it
	Status      int           `json:"status,omitempty"`       // for the kinds that send one; 0: the kind's own
	Delay       time.Duration `json:"-"`                      // delay, delay-body, result, error, echo: the pause; drip: between two bytes; refuse, deaf: how long. "delay": "1.5s" in JSON
	Body        string        `json:"body,omitempty"`         // status, html, result, error: what to send
	ContentType string        `json:"content_type,omitempty"` // status, content-type: the Content-Type
	Location    string        `json:"location,omitempty"`     // redirect: the target; poison-remote-ref: the reference
	Size        int64         `json:"size,omitempty"`         // huge, huge-members, huge-gzip: bytes of the body, uncompressed; 0: 256 MiB
	Cookie      string        `json:"cookie,omitempty"`       // set-cookie: the header's value; {seq} stands for the number of the journal's entry
}

// Duration is a time span that JSON holds as people write it: "1.5s", "200ms".
type Duration time.Duration

// MarshalJSON writes the span as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads the span from text.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a time span is a text such as \"1.5s\", not %s", data)
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("a time span is a text such as \"1.5s\", not %q", text)
	}
	*d = Duration(span)
	return nil
}

// fields is Fault without its methods.
type fields Fault

// faultJSON is a fault with its delay as text.
type faultJSON struct {
	*fields
	Delay Duration `json:"delay,omitzero"`
}

// MarshalJSON writes the delay as text.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(faultJSON{(*fields)(&f), Duration(f.Delay)})
}

// UnmarshalJSON reads a fault; a member that no fault has is an error.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var w faultJSON
	w.fields = (*fields)(f)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return err
	}
	f.Delay = time.Duration(w.Delay)
	return nil
}
