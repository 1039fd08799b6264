package bridge_test

import (
	"encoding/json"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestViolationsAreAllNamed(t *testing.T) {
	front := start(t, newSite(t, `{"id":"content.x","attributes":{"params":{"a":{"schema":{"type":"string"},"attributes":{"required":true}},
		"b":{"schema":{"type":"object","properties":{"c":{"enum":["x","y"]}}}}},"mcpTool":{}}}`))
	r := call(t, front, "agent", "content.x", `{"b":{"c":"z"}}`)
	var got struct {
		Error struct {
			Data struct {
				Parameter, Expected, Received string
				Errors                        []struct{ Parameter, Expected, Received, Schema_path string }
			}
		}
	}
	must.Do(t, json.Unmarshal([]byte(r.Body), &got))
	d := got.Error.Data
	if r.Status != 400 || d.Parameter != "a" || d.Expected != "a value" || d.Received != "nothing" || len(d.Errors) != 2 ||
		d.Errors[1].Parameter != "b.c" || d.Errors[1].Schema_path != "#/properties/b/properties/c/enum" {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}

func TestLenientWhereDrupalIs(t *testing.T) {
	front := start(t, newSite(t, echo))
	for _, arguments := range []string{`{}`, `{"n":null}`, `{"n":2.0}`, `{"unknown":1}`, `[]`} {
		r := call(t, front, "agent", "content.echo", arguments)
		must.Expect(t, r.Status == 200, "%s: %d %s", arguments, r.Status, r.Body)
	}
}
