package compare

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Difference is one point in which a response is not as recorded.
type Difference struct {
	Record   string `json:"record"`
	Where    string `json:"where"` // status, header NAME, html title, or body and the JSON pointer in it where there is one
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s: expected %s, got %s", d.Record, d.Where, d.Expected, d.Got)
}

// Received is the response of the site under comparison.
type Received struct {
	Status int
	Header http.Header
	Body   []byte
}

// LeftOut is headers that are not compared, and the reason.
type LeftOut struct {
	Headers []string `json:"headers"`
	Why     string   `json:"why"`
}

// volatile is what differs from run to run, as volatile.json lists it.
type volatile struct {
	LeftOut           []LeftOut `json:"headers_left_out"`
	HeadersByPresence []string  `json:"headers_by_presence"`
	Members           []struct {
		Path    string `json:"path"`    // pattern for the request's path; "": any
		Request string `json:"request"` // pattern for the request's body or query; "": any
		Member  string `json:"member"`  // of the response's object: compared by shape
	} `json:"members"`
	Texts []struct {
		Pattern string `json:"pattern"` // a part of a text that depends on where the site is installed
		As      string `json:"as"`      // what to read in its place
	} `json:"texts"`
	Passwords []struct {
		About    string `json:"about"` // substring of the record's about
		Password string `json:"password"`
	} `json:"passwords"`
}

//go:embed volatile.json
var volatileJSON []byte

func loadVolatile() volatile {
	var v volatile
	if err := json.Unmarshal(volatileJSON, &v); err != nil {
		panic("transcript: volatile.json: " + err.Error()) // embedded: a test reads it
	}
	return v
}

// password returns the wrong password of a record that is about one.
func (v volatile) password(r Record) (wrong string, ok bool) {
	for _, p := range v.Passwords {
		if strings.Contains(r.About, p.About) {
			return p.Password, true
		}
	}
	return "", false
}

// shapes returns the members of the response's body that are compared by shape.
func (v volatile) shapes(r Record) []string {
	text, _ := url.QueryUnescape(r.Request.Path)
	if r.Request.Body != nil {
		text += *r.Request.Body
	}
	var names []string
	for _, m := range v.Members {
		if regexp.MustCompile(m.Path).MatchString(r.Request.Path) && regexp.MustCompile(m.Request).MatchString(text) {
			names = append(names, m.Member)
		}
	}
	return names
}

// Compare returns where a response differs from the record's: status, all headers but those of HeadersLeftOut, and the body
// byte for byte; of a page only the title. base is the address at which the site under comparison was called: absolute links
// must start with it.
func Compare(r Record, a Received, base string) []Difference {
	return loadVolatile().compare(r, a, base)
}

// HeadersLeftOut lists the headers that are not compared.
func HeadersLeftOut() []LeftOut { return loadVolatile().LeftOut }

func (v volatile) compare(r Record, a Received, base string) []Difference {
	return (&comparison{record: r, volatile: v, base: base}).run(a)
}

func (c *comparison) run(a Received) []Difference {
	r := c.record
	if a.Status != r.Response.Status {
		var body string
		if r.Response.Body != nil {
			body = *r.Response.Body
		}
		c.differ("status", summary(r.Response.Status, body), summary(a.Status, string(a.Body)))
		return c.found
	}
	c.headers(a.Header)
	c.body(a)
	return c.found
}

type comparison struct {
	record   Record
	volatile volatile
	base     string
	core     *mockdrupal.Core // the version of Drupal under comparison; nil: the recorded one
	found    []Difference
}

func summary(status int, body string) string {
	if status == 0 {
		return "no response"
	}
	return strings.TrimSpace(strconv.Itoa(status) + " " + body)
}

func (c *comparison) differ(where, expected, got string) {
	c.found = append(c.found, Difference{c.record.ID, where, shorten(expected), shorten(got)})
}

// shown is how much of a text a difference shows.
const shown = 200

func shorten(s string) string {
	if len(s) > shown {
		return s[:shown] + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

func (c *comparison) headers(got http.Header) {
	names := slices.Collect(maps.Keys(got))
	recorded := http.Header{}
	for name, value := range c.record.Response.Headers {
		recorded.Set(name, value)
		names = append(names, http.CanonicalHeaderKey(name))
	}
	if c.core != nil {
		c.core.Rewrite(recorded)
	}
	slices.Sort(names)
	for _, key := range slices.Compact(names) {
		if slices.ContainsFunc(c.volatile.LeftOut, func(l LeftOut) bool { return contains(l.Headers, key) }) {
			continue
		}
		want, have := c.relocate(recorded.Get(key)), strings.Join(got[key], ", ")
		if contains(c.volatile.HeadersByPresence, key) {
			want, have = strconv.FormatBool(want != ""), strconv.FormatBool(have != "")
		}
		if want != have {
			c.differ("header "+key, orNone(want), orNone(have))
		}
	}
}

func contains(names []string, key string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, key) })
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// relocate puts the compared site's address in place of the recorded one.
func (c *comparison) relocate(s string) string {
	was := c.record.host()
	if was == "" || c.base == "" {
		return s
	}
	escaped := func(s string) string { return strings.ReplaceAll(s, "/", `\/`) } // as PHP writes it in JSON
	for _, from := range []string{"http://" + was, "https://" + was} {
		s = strings.NewReplacer(from, c.base, escaped(from), escaped(c.base)).Replace(s)
	}
	return s
}

var titleTag = regexp.MustCompile(`(?is)<title>(.*?)</title>`)

func (c *comparison) body(a Received) {
	want := c.record.Response
	if want.HTMLTitle != "" {
		title := "none"
		if m := titleTag.FindSubmatch(a.Body); m != nil {
			title = html.UnescapeString(strings.TrimSpace(string(m[1])))
		}
		if expected := c.relocate(want.HTMLTitle); title != expected {
			c.differ("html title", expected, title)
		}
		return
	}
	if want.Body == nil {
		return
	}
	expected, got, before := c.volatile.read([]byte(c.relocate(*want.Body))), c.volatile.read(a.Body), len(c.found)
	if expected == got {
		return
	}
	if isJSON([]byte(expected)) && isJSON(a.Body) {
		shapes := c.volatile.shapes(c.record)
		if c.json("", []byte(expected), []byte(got), shapes); len(c.found) > before || len(shapes) > 0 {
			return
		}
	}
	// No JSON, or the same JSON in other bytes.
	at := 0
	for at < min(len(expected), len(got)) && expected[at] == got[at] {
		at++
	}
	from := max(0, at-shown/4)
	c.differ("body", expected[from:], got[from:])
}

func isJSON(b []byte) bool {
	_, err := php.Decode(b)
	return err == nil
}

// json finds where two documents differ, token by token; members may come in any order. Of shapes only the shape is compared.
func (c *comparison) json(at string, want, got []byte, shapes []string) {
	w, g := php.Members(want), php.Members(got)
	if w != nil && g != nil || isEmptyObject(want) && isEmptyObject(got) {
		c.members(at, w, g, shapes)
		return
	}
	if w, g := php.Elements(want), php.Elements(got); w != nil && g != nil {
		if len(w) != len(g) {
			c.differ(pointer(at)+" (length)", strconv.Itoa(len(w)), strconv.Itoa(len(g)))
			return
		}
		for i := range w {
			c.json(at+"/"+strconv.Itoa(i), w[i], g[i], nil)
		}
		return
	}
	if w, g := strings.TrimSpace(string(want)), strings.TrimSpace(string(got)); w != g {
		c.differ(pointer(at), w, g)
	}
}

// read is a text without what depends on where a site is installed.
func (v volatile) read(text []byte) string {
	for _, t := range v.Texts {
		text = regexp.MustCompile(t.Pattern).ReplaceAllLiteral(text, []byte(t.As))
	}
	return string(text)
}

func isEmptyObject(doc []byte) bool { return strings.HasPrefix(strings.TrimSpace(string(doc)), "{") }

func pointer(at string) string { return "body " + at }

func (c *comparison) members(at string, want, got []php.Member, shapes []string) {
	find := func(list []php.Member, name string) []byte {
		i := slices.IndexFunc(list, func(m php.Member) bool { return m.Name == name })
		if i < 0 {
			return nil
		}
		return list[i].Raw
	}
	for _, m := range want {
		have := find(got, m.Name)
		switch {
		case have == nil:
			c.differ(pointer(at+"/"+m.Name), string(m.Raw), "none")
		case slices.Contains(shapes, m.Name):
			if w, g := shape(m.Raw), shape(have); w != g {
				c.differ(pointer(at+"/"+m.Name)+" (shape)", w, g)
			}
		default:
			c.json(at+"/"+m.Name, m.Raw, have, nil)
		}
	}
	for _, m := range got {
		if find(want, m.Name) == nil {
			c.differ(pointer(at+"/"+m.Name), "none", string(m.Raw))
		}
	}
}

// shape is what stays of a value that differs from run to run: its type, and whether a text holds anything.
func shape(raw []byte) string {
	v, err := php.Decode(raw)
	if err != nil {
		return "no JSON"
	}
	if text, ok := v.(string); ok && text == "" {
		return "empty string"
	}
	return php.TypeName(v)
}
