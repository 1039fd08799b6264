package attacks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// longest is just below the longest body that the bridge takes by default.
const longest = 2_000_000

// oversized are arguments that fill a body and are as expensive to check as one can make them, by the tool's name.
var oversized = map[string]func() string{
	"content.integers": func() string { return items(`""`) },
	"content.unique":   func() string { return items(`""`) },
	"content.objects":  func() string { return items(`{"a":""}`) },
	"content.pattern":  func() string { return items(`"` + strings.Repeat("a", 100) + `!"`) },
	"content.numbers":  func() string { return items(`1e999`) },
	"content.names":    func() string { return `{"v":` + wide() + `}` },
	"content.closed":   func() string { return `{"v":` + wide() + `}` },
	"content.any":      func() string { return items(`""`) },
	"content.tree":     func() string { return items(strings.Repeat("[", 400) + strings.Repeat("]", 400)) },
	"content.formats":  func() string { return items(`"((((((((((((((((("`) },
	"content.enum":     func() string { return items(`""`) },
	"content.later":    func() string { return items(`""`) },
	"content.echo":     func() string { return items(`{"":0}`) },
}

// items is {"v": [item, …]} that fills a body.
func items(item string) string {
	return `{"v":[` + strings.TrimSuffix(strings.Repeat(item+",", longest/(len(item)+1)), ",") + `]}`
}

// wide is an object of very many members.
func wide() string {
	var b strings.Builder
	for i := 0; b.Len() < longest-20; i++ {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	return `{` + b.String()[1:] + `}`
}

const (
	attackers = 6
	// mostSteps is what checking one value may take: 4 million, and those that it counts together with the last.
	mostSteps = 4_001_000
	// mostMiB holds the program, the bodies under way, and one check at a time of 20 times its body.
	mostMiB = 200
)

// A body that is expensive to check costs a bounded number of steps and bounded memory, also when nobody waits for the
// response: half of the callers close their sockets at once.
func TestOversizedValues(t *testing.T) {
	for tool, arguments := range oversized {
		t.Run(tool, func(t *testing.T) {
			p := start(t, newSite(t))
			body := arguments()
			p.besides(func() {
				crowd(attackers, func(i int) {
					patience := time.Minute
					if i%2 == 0 {
						patience = 300 * time.Millisecond
					}
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					status, response := p.call(ctx, "mallory", tool, body)
					must.Expect(t, status == 0 || status == 200 || status == 400 || status == 503, "%d %.300s", status, response)
					n := strings.Count(response, `"parameter"`)
					must.Expect(t, n <= 51, "%d violations in one response", n)
				})()
			})
			p.bounded(mostMiB)
			steps := p.metric("bridge_validation_steps_total")
			must.Expect(t, steps <= attackers*mostSteps && steps != 0, "%.0f steps for %d values", steps, attackers)
		})
	}
}

// The same over MCP, and values that come in small bodies but many at a time.
func TestOversizedValuesOverMCP(t *testing.T) {
	p := start(t, newSite(t))
	body := oversized["content.integers"]()
	p.besides(func() {
		crowd(attackers, func(int) {
			message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"content.integers","arguments":` + body +
				`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
			status, response := p.send(context.Background(), "127.0.0.1", "mallory", "POST", "/mcp", message, map[string][]string{
				"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"content.integers"}})
			must.Expect(t, (status == 200 || status == 503) && len(response) <= 64<<10,
				"%d, %d bytes: %.300s", status, len(response), response)
		})()
	})
	p.bounded(mostMiB)
	steps := p.metric("bridge_validation_steps_total")
	must.Expect(t, steps <= attackers*mostSteps && steps != 0, "%.0f steps for %d values", steps, attackers)
}

// Documents that are no calls at all cost no more than they are long.
func TestOversizedEnvelopes(t *testing.T) {
	deep := strings.Repeat("[", longest/2) + strings.Repeat("]", longest/2)
	for name, body := range map[string]string{
		"a batch of numbers":   `[` + strings.Repeat("0,", longest/2-2) + `0]`,
		"a batch of calls":     `[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, longest/45) + `{}]`,
		"a wide envelope":      wide(),
		"wide parameters":      `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + wide()[:longest-200] + `"z":0}}`,
		"deep":                 deep,
		"escaped strings":      `{"name":["` + strings.Repeat(`\n","`, longest/5-5) + `"]}`,
		"zipped, as it claims": "\x1f\x8b\x08\x00" + strings.Repeat("\x00", longest-10),
		"a long name":          `{"name":"` + strings.Repeat("n", longest-100) + `","arguments":{}}`,
		"one long number":      `{"name":"content.echo","arguments":{"v":` + strings.Repeat("9", longest-100) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, newSite(t))
			before := p.site.calls.Load()
			crowd(2*attackers, func(i int) {
				path := []string{"/mcp", "/mcp/tools/invoke"}[i%2]
				status, response := p.send(context.Background(), "127.0.0.1", "mallory", "POST", path, body, map[string][]string{"Content-Encoding": {"gzip"}})
				must.Expect(t, status >= 400 && (status < 500 || status == 503) && len(response) <= 4096,
					"%s: %d %.300s", path, status, response)
			})()
			p.mustServe("after the attack")
			p.bounded(200)
			must.Equal(t, p.site.calls.Load()-before, 1, "calls that the site got, of which one is honest")
		})
	}
}
