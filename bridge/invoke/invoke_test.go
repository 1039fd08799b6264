package invoke

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A result is there because the method has run: it waits to be checked where arguments are refused.
func TestAResultWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := fair.NewWork(1, 0)
		leave := must.Get(work.Enter(t.Context(), fair.Key{1}, fair.Long+1))(t)
		in := &Invoker{Work: work, Validator: schema.NewValidator(work, nil), Output: OutputRefuse}
		tool := catalog.NewTool(catalog.Definition{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`),
			OutputSchema: json.RawMessage(`{"type":"string"}`)}, schema.NewLazy)
		result := json.RawMessage(`"` + strings.Repeat("x", fair.Long) + `"`)

		_, err := in.Turn(t.Context(), caller.Caller{}, len(result))
		must.Expect(t, err != nil, "arguments are not refused while another document is worked on")

		time.AfterFunc(time.Minute, leave)
		checked := must.Get(in.checkResult(t.Context(), caller.Caller{}, tool, result))(t)
		must.Expect(t, string(checked) == string(result), "the result is %.20s", checked)

		defer must.Get(work.Enter(t.Context(), fair.Key{1}, fair.Long+1))(t)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = in.checkResult(ctx, caller.Caller{}, tool, result)
		must.Expect(t, err != nil, "a result is waited for although its caller has gone")
	})
}
