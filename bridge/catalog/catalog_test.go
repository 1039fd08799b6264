package catalog

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func tools(names ...string) []*Tool {
	var list []*Tool
	for _, name := range names {
		list = append(list, NewTool(Definition{Name: name, Method: name, Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`)}, schema.NewLazy))
	}
	return list
}

func TestCursorsThatNobodyGaveOut(t *testing.T) {
	for _, text := range []string{
		"=", "@@@", "NTA==", "NTA===", "N T A=", "NTA=\n", "NT\rA", "Njk5", "LTUw", "KzUw", "MDUw", "NTBh", "NTAuMA==", " NTA=",
		base64.StdEncoding.EncodeToString([]byte("99999999999999999999")), strings.Repeat("A", 8<<10), "NTB=", "\x00",
	} {
		c, err := ParseCursor(text)
		if text == "Njk5" { // 699 is as good as any
			must.Expect(t, err == nil && c == 699, "ParseCursor(%q) = %d, %v", text, c, err)
			continue
		}
		must.Expect(t, err != nil, "ParseCursor(%.40q) = %d, want an error", text, c)
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "NTA=", "NTA", "LTE=", "MDE="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCursor(text)
		if err != nil {
			return
		}
		decimal, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		must.Expect(t, text == "" || string(decimal) == strconv.Itoa(int(c)), "ParseCursor(%q) = %d, but it holds %q", text, c, decimal)
		must.Expect(t, c >= 0, "ParseCursor(%q) = %d", text, c)
	})
}

func TestDiff(t *testing.T) {
	old, now := New(tools("a", "b", "c"), 2), New(tools("b", "c", "d"), 2)
	now.tools[0] = NewTool(Definition{Name: "b", Method: "b", Description: "other", InputSchema: json.RawMessage(`{}`)}, schema.NewLazy)
	must.Equal(t, fmt.Sprint(Diff(old, now)), "{[d] [a] [b]}", "Diff")
	must.Expect(t, !Diff(old, New(tools("a", "b", "c"), 3)).Any(), "equal tools differ")
	must.Expect(t, len(Diff(nil, old).Added) == 3, "everything is new to begin with")
}

// Who asks for a page at every offset fills no memory.
func TestAListingRemembersOnlySoMuch(t *testing.T) {
	names := make([]string, 3*maxIssued)
	for i := range names {
		names[i] = fmt.Sprint("t", i)
	}
	var l Listing
	c := New(tools(names...), 1)
	for at := range names {
		l.Page(c, Cursor(at))
	}
	must.Expect(t, len(l.issued) <= maxIssued, "%d cursors are remembered", len(l.issued))
}

// However the tools change between two pages, one that stays in its order is neither lost nor doubled.
func TestAChangeBetweenPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before, after, kept []string
		for i := range rapid.IntRange(1, 20).Draw(t, "tools") {
			name := fmt.Sprint("t", i)
			before = append(before, name)
			for j := range rapid.IntRange(0, 2).Draw(t, "added") {
				after = append(after, fmt.Sprint(name, "new", j))
			}
			if rapid.Bool().Draw(t, "stays") {
				after, kept = append(after, name), append(kept, name)
			}
		}
		if len(kept) == 0 {
			return // nothing to lose
		}
		size := rapid.IntRange(1, 5).Draw(t, "page size")
		var l Listing
		count := map[string]int{}
		p := l.Page(New(tools(before...), size), 0)
		now := New(tools(after...), size)
		for {
			for _, tool := range p.Tools {
				count[tool.Name]++
			}
			if p.Next == 0 {
				break
			}
			p = l.Page(now, p.Next)
		}
		for _, name := range kept {
			must.Assert(t, count[name] == 1, "%s came %d times; before %v, after %v", name, count[name], before, after)
		}
	})
}
