package attacks

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A site gives one caller many tools with patterns: those that are too dear to compile cost their own tool alone, and of the
// others few stay compiled at a time.
func TestPatterns(t *testing.T) {
	limitMemory(t)
	dear := strings.Repeat(`(\\pL{1000})`, 1800) // 22 KB
	var items []string
	method := func(id, pattern string) {
		items = append(items, fmt.Sprintf(`{"id":"content.%s","attributes":{"usage":"A method","params":{"v":{"schema":{"type":"string","pattern":"%s"}}},"mcpTool":{}}}`, id, pattern))
	}
	for i := range 100 {
		method(fmt.Sprint("affordable", i), fmt.Sprintf(`^([a-z]{1,900}|%d)`, i))
		method(fmt.Sprint("short", i), fmt.Sprintf(`(\\pL{1,%d}){30}`, 900-i))
		method(fmt.Sprint("dear", i), dear+fmt.Sprint(i))
	}
	s := newSite(t)
	s.hostileList(func(w io.Writer) {
		io.WriteString(w, `{"data":[`+strings.Join(items, ",")+`],"meta":{"mcp":{"discovery":true}}}`)
	})
	p := start(t, s)
	const calls = 300
	called, longest := 0, time.Duration(0)
	p.besides(func() {
		for i := range calls {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			began := time.Now()
			status, body := p.call(ctx, "mallory", fmt.Sprintf("content.%s%d", []string{"affordable", "short", "dear"}[i%3], i/3), `{"v":"`+strings.Repeat("a", 500)+`"}`)
			cancel()
			longest = max(longest, time.Since(began))
			switch {
			case status == 200:
				called++
			case status != 400 && status != 404 && status != 502:
				t.Errorf("call %d gets %d %.300s", i, status, body)
			}
		}
	})
	t.Logf("%d of %d calls were served, the longest after %s", called, calls, longest)
	must.Expect(t, called >= calls/3, "%d of %d calls were served: tools with affordable patterns are lost, too", called, calls)
	p.bounded(250)
}
