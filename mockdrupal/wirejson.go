package mockdrupal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

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

// callJSON keeps id and params as text: every byte, as it was sent.
type callJSON struct {
	Method       string  `json:"method"`
	ID           *string `json:"id,omitempty"`
	Params       *string `json:"params,omitempty"`
	Ran          bool    `json:"ran"`
	Notification bool    `json:"notification,omitempty"`
}

// MarshalJSON writes id and params as texts that hold the JSON as it was sent.
func (c Call) MarshalJSON() ([]byte, error) {
	return json.Marshal(callJSON{c.Method, text(c.ID), text(c.Params), c.Ran, c.Notification})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Call) UnmarshalJSON(data []byte) error {
	var w callJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*c = Call{w.Method, raw(w.ID), raw(w.Params), w.Ran, w.Notification}
	return nil
}

func text(r fixtures.Raw) *string {
	if r == nil {
		return nil
	}
	s := string(r)
	return &s
}

func raw(s *string) fixtures.Raw {
	if s == nil {
		return nil
	}
	return fixtures.Raw(*s)
}

// faultFields is Fault without its methods.
type faultFields Fault

// faultJSON is a fault with its delay as text.
type faultJSON struct {
	*faultFields
	Delay Duration `json:"delay,omitzero"`
}

// MarshalJSON writes the delay as text.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(faultJSON{(*faultFields)(&f), Duration(f.Delay)})
}

// UnmarshalJSON reads a fault; a member that no fault has is an error.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var w faultJSON
	w.faultFields = (*faultFields)(f)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return err
	}
	f.Delay = time.Duration(w.Delay)
	return nil
}
