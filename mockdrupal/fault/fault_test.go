package fault

import (
	"encoding/json"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A fault that the control plane takes is written as it is read.
func FuzzFault(f *testing.F) {
	for _, s := range []string{`{"kind":"delay","delay":"1.5s"}`, `{"kind":"status","status":503,"times":2,"user":"agent","method":"content.*"}`, `{"delay":1}`, `{"delay":"-1ns"}`, `{"kind":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var read, again Fault
		if json.Unmarshal(data, &read) != nil {
			return
		}
		text, err := json.Marshal(read)
		must.Assert(t, err == nil, "%s: %v", data, err)
		err = json.Unmarshal(text, &again)
		must.Expect(t, err == nil && again == read, "%s is written as %s, which is read as %+v: %v", data, text, again, err)
	})
}
