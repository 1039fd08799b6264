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

func TestCursorsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.IntRange(0, maxOffset).Draw(t, "offset")
		text := Cursor(offset).String()
		for _, form := range []string{text, strings.TrimRight(text, "=")} {
			c, err := ParseCursor(form)
			must.Assert(t, err == nil && int(c) == offset, "ParseCursor(%q) = %d, %v, want %d", form, c, err, offset)
		}
	})
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

// Following the cursors from any tool on gives all tools from there, once, in order.
func TestPagesCoverAllOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 40).Draw(t, "tools"), rapid.IntRange(1, 10).Draw(t, "page size")
		from := rapid.IntRange(0, 45).Draw(t, "from")
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("t", i))
		}
		c := New(tools(names...), size)
		var got []string
		for at, first := Cursor(from), true; first || at > 0; first = false {
			p := c.Page(at)
			must.Assert(t, p.Next <= 0 || len(p.Tools) == size && p.Next > at,
				"page at %d has %d tools and goes on at %d", at, len(p.Tools), p.Next)
			must.Assert(t, json.Valid(p.Body), "page at %d: %s", at, p.Body)
			for _, tool := range p.Tools {
				got = append(got, tool.Name)
			}
			at = p.Next
		}
		want := names[min(from, n):]
		must.Assert(t, strings.Join(got, " ") == strings.Join(want, " "), "from %d: %v, want %v", from, got, want)
	})
}

func TestDiff(t *testing.T) {
	old, now := New(tools("a", "b", "c"), 2), New(tools("b", "c", "d"), 2)
	now.tools[0] = NewTool(Definition{Name: "b", Method: "b", Description: "other", InputSchema: json.RawMessage(`{}`)}, schema.NewLazy)
	must.Equal(t, fmt.Sprint(Diff(old, now)), "{[d] [a] [b]}", "Diff")
	must.Expect(t, !Diff(old, New(tools("a", "b", "c"), 3)).Any(), "equal tools differ")
	must.Expect(t, len(Diff(nil, old).Added) == 3, "everything is new to begin with")
}

func TestTheVersionIsTheContent(t *testing.T) {
	a, b := New(tools("a", "b"), 2), New(tools("a", "b"), 2)
	must.Expect(t, a.Version == b.Version && a.Version != New(tools("b", "a"), 2).Version && a.Version != New(tools("a"), 2).Version,
		"versions do not follow the content")
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
