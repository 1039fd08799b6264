package jsonschema_test

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

func TestConsensusLeavesOpenWhatDoublesDecide(t *testing.T) {
	for _, c := range []struct {
		schema, value  string
		takes, refuses bool
	}{
		{`{"maximum":9007199254740992}`, `9007199254740992`, true, false},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false, false}, // a double of it is the bound
		{`{"maximum":9007199254740992}`, `9007199254740994`, false, true},
		{`{"maximum":9007199254740993}`, `9007199254740993`, true, false},
		{`{"minimum":9007199254740993}`, `9007199254740992`, false, false}, // a double of the bound is it
		{`{"properties":{"n":{"enum":[9007199254740993]}}}`, `{"n":9007199254740992}`, false, false},
		{`{"properties":{"n":{"enum":[9007199254740993]}}}`, `{"n":1}`, false, true},
		{`{"type":"integer"}`, `9223372036854775807`, true, false},
	} {
		schema := must.Get(exact.Parse([]byte(c.schema)))(t)
		value := must.Get(exact.Parse([]byte(c.value)))(t)
		consensus := must.Get(jsonschema.Agree(schema, jsonschema.Draft7))(t)
		if takes, refuses := consensus.Takes(value), consensus.Refuses(value); takes != c.takes || refuses != c.refuses {
			t.Errorf("%s of %s: takes %t, refuses %t; want %t, %t", c.schema, c.value, takes, refuses, c.takes, c.refuses)
		}
	}
}
