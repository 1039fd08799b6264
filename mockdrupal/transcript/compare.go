package transcript

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

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Difference is one point in which a response is not as recorded.
type Difference struct {
	Record   string `json:"record"`
	Where    string `json:"where"` // status, header NAME, html title, or body and the JSON pointer in it
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

// volatile is what differs from run to run, as volatile.json lists it.
type volatile struct {
	IgnoredHeaders    []string `json:"ignored_headers"`
	HeadersByPresence []string `json:"headers_by_presence"`
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

// Compare returns where a response differs from the recorded one: status, content type, the headers that mean
// something, and the body; JSON as JSON with numbers and strings compared by their text, of a page only the title. host
// is the address that the site under comparison was called at; absolute links must contain it.
func Compare(r Record, a Received, host string) []Difference {
	return loadVolatile().compare(r, a, host)
}

func (v volatile) compare(r Record, a Received, host string) []Difference {
	if r.Response.Status == 0 {
		return nil // no response was recorded
	}
	c := comparison{record: r, volatile: v, host: host}
	if a.Status != r.Response.Status {
		c.differ("status", strconv.Itoa(r.Response.Status), strings.TrimSpace(strconv.Itoa(a.Status)+" "+string(a.Body)))
		return c.found
	}
	c.headers(a.Header)
	c.body(a)
	return c.found
}

type comparison struct {
	record   Record
	volatile volatile
	host     string
	found    []Difference
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

// mustAgree are headers that a response may not have where the record has none.
var mustAgree = []string{"Content-Type", "WWW-Authenticate", "Allow", "Location"}

func (c *comparison) headers(got http.Header) {
	names := slices.Concat(slices.Collect(maps.Keys(c.record.Response.Headers)), mustAgree)
	slices.Sort(names)
	seen := map[string]bool{}
	for _, name := range names {
		key := http.CanonicalHeaderKey(name)
		if seen[key] || contains(c.volatile.IgnoredHeaders, key) {
			continue
		}
		seen[key] = true
		want, have := c.relocate(c.record.Response.header(name)), got.Get(name)
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
	if was := c.record.host(); was != "" && c.host != "" {
		return strings.ReplaceAll(s, was, c.host)
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
	expected := c.relocate(*want.Body)
	if expected == string(a.Body) {
		return
	}
	if !isJSON([]byte(expected)) || !isJSON(a.Body) {
		c.differ("body", expected, string(a.Body))
		return
	}
	c.json("", []byte(expected), a.Body)
}

func isJSON(b []byte) bool {
	_, err := php.Decode(b)
	return err == nil
}

// json compares two documents token by token; members may come in any order.
func (c *comparison) json(at string, want, got []byte) {
	w, g := php.Members(want), php.Members(got)
	if w != nil && g != nil || isEmptyObject(want) && isEmptyObject(got) {
		c.members(at, w, g)
		return
	}
	if w, g := php.Elements(want), php.Elements(got); w != nil && g != nil {
		if len(w) != len(g) {
			c.differ(pointer(at)+" (length)", strconv.Itoa(len(w)), strconv.Itoa(len(g)))
			return
		}
		for i := range w {
			c.json(at+"/"+strconv.Itoa(i), w[i], g[i])
		}
		return
	}
	if c.volatile.read(want) != c.volatile.read(got) {
		c.differ(pointer(at), string(want), string(got))
	}
}

// read is a scalar as it is compared.
func (v volatile) read(scalar []byte) string {
	text := strings.TrimSpace(string(scalar))
	for _, t := range v.Texts {
		text = regexp.MustCompile(t.Pattern).ReplaceAllLiteralString(text, t.As)
	}
	return text
}

// WithoutVolatile is a text without what depends on where a site is installed.
func WithoutVolatile(text []byte) []byte {
	for _, t := range loadVolatile().Texts {
		text = regexp.MustCompile(t.Pattern).ReplaceAllLiteral(text, []byte(t.As))
	}
	return text
}

func isEmptyObject(doc []byte) bool { return strings.HasPrefix(strings.TrimSpace(string(doc)), "{") }

func pointer(at string) string { return "body " + at }

func (c *comparison) members(at string, want, got []php.Member) {
	find := func(list []php.Member, name string) []byte {
		i := slices.IndexFunc(list, func(m php.Member) bool { return m.Name == name })
		if i < 0 {
			return nil
		}
		return list[i].Raw
	}
	var shapes []string
	if at == "" {
		shapes = c.volatile.shapes(c.record)
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
			c.json(at+"/"+m.Name, m.Raw, have)
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
