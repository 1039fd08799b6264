// Package compare compares two sites request by request: a mock or a site with recordings of a real site, and a site with the
// mock of the same site file. It is no load tool and knows nothing of bridges; which side is right it does not say.
//
// Its invariant: no credential is ever written into a recording or a report. The requests have two sources: recordings, which
// Verify replays and MakeRecordings makes, and Generate, which draws valid, invalid and malformed requests from a site file.
// Either way a request is a Record, and response.go decides where the response differs from the record's.
package compare

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Record is one request and the site's response, one line of an area's file.
type Record struct {
	ID         string   `json:"id"` // area/name
	About      string   `json:"about"`
	As         string   `json:"as"`          // the account, or anonymous
	Auth       string   `json:"auth"`        // none, basic, cookie, bearer or bearer:TOKEN
	FreshCache bool     `json:"fresh_cache"` // false: a further step of a sequence
	Request    Request  `json:"request"`
	Response   Response `json:"response"`
	Site       string   `json:"site,omitempty"` // host and port of the site
}

// Request is what was sent, without its credentials.
type Request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with the query
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
}

// Response is what came back. The body of an HTML page is left out, its title kept.
type Response struct {
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      *string           `json:"body"`
	HTMLTitle string            `json:"html_title,omitempty"`
}

// header returns a header whatever the case of its name.
func (r Response) header(name string) string {
	for have, value := range r.Headers {
		if strings.EqualFold(have, name) {
			return value
		}
	}
	return ""
}

// Area is one file of recordings.
type Area struct {
	Name    string
	Records []Record
}

// ErrNoRecords means that a directory holds no recordings.
var ErrNoRecords = errors.New("no *.jsonl files with recordings")

// Load reads the areas of a directory, by name. Every record of an area's file belongs to it. It fails on a line that
// is no record, with file and line.
func Load(dir string) ([]Area, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("looking for recordings in %s: %w", dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading the recordings in %s: %w", dir, ErrNoRecords)
	}
	areas := make([]Area, 0, len(files))
	for _, file := range files {
		area, err := loadArea(file)
		if err != nil {
			return nil, err
		}
		areas = append(areas, area)
	}
	slices.SortFunc(areas, func(a, b Area) int { return strings.Compare(a.Name, b.Name) })
	return areas, nil
}

// maxLine is the longest record: a list of a large site with its request.
const maxLine = 64 << 20

func loadArea(file string) (Area, error) {
	area := Area{Name: strings.TrimSuffix(filepath.Base(file), ".jsonl")}
	data, err := os.ReadFile(file)
	if err != nil {
		return area, fmt.Errorf("reading the recordings: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		r, err := ParseRecord(lines.Bytes())
		if err != nil {
			return area, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		area.Records = append(area.Records, r)
	}
	return area, lines.Err()
}

// ParseRecord reads one line.
func ParseRecord(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case r.ID == "":
		return r, errors.New("not a record: id is missing")
	case r.Request.Method == "" || !strings.HasPrefix(r.Request.Path, "/"):
		return r, fmt.Errorf("record %s: the request needs a method and a path that starts with /", r.ID)
	case r.Response.Status != 0 && (r.Response.Status < 100 || r.Response.Status > 599):
		return r, fmt.Errorf("record %s: %d is no HTTP status", r.ID, r.Response.Status)
	}
	return r, nil
}

var linkHost = regexp.MustCompile(`https?:(?:\\?/){2}([A-Za-z0-9.\-]+(?::\d+)?)`)

// host is the address under which the site was recorded, as its absolute links have it.
func (r Record) host() string {
	if r.Site != "" {
		return r.Site
	}
	if m := linkHost.FindStringSubmatch(r.Response.header("Location")); m != nil {
		return m[1]
	}
	if body := r.Response.Body; body != nil && strings.HasPrefix(r.Response.header("Content-Type"), "application/json") {
		if m := linkHost.FindStringSubmatch(*body); m != nil {
			return m[1]
		}
	}
	return ""
}
