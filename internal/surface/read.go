package surface

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// ErrOther says that a document is of another kind than those that Parse reads.
var ErrOther = errors.New("it is no lock of tools, no report and no list of tools")

// errReport says that a document is a report.
var errReport = errors.New("it is a report")

// maxFile bounds a file, in bytes.
const maxFile = 64 << 20

// Read reads a surface from a file as Parse does, or from a report: a report.json, or a directory with one.
func Read(path, caller string) (*Surface, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	if !info.IsDir() {
		data, err := wholefile.Read(path, maxFile)
		if err != nil {
			return nil, fmt.Errorf("read the tools: %w", err)
		}
		if len(data) > maxFile {
			return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
		}
		s, err := Parse(data, caller)
		if !errors.Is(err, errReport) {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			return s, err
		}
	}
	report, err := reports.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := fromReport(report)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Parse reads a surface from a lock file or a saved list of tools: the result or the response of MCP's
// tools/list or of GET /mcp/tools/list, or several such pages in an array. A saved list is what caller sees. The error is
// ErrOther for JSON of another kind.
func Parse(data []byte, caller string) (*Surface, error) {
	document, err := exact.Parse(data)
	if err != nil {
		return nil, err
	}
	object, _ := document.(map[string]any)
	switch {
	case object["tools_lock"] != nil:
		return parseLock(object)
	case object["results"] != nil && object["ledger"] != nil:
		return nil, errReport
	}
	pages, several := document.([]any)
	if !several {
		pages = []any{document}
	} else if len(pages) > 0 && !isPage(pages[0]) { // the tools alone
		pages = []any{map[string]any{"tools": pages}}
	}
	var tools []map[string]any
	for i, page := range pages {
		found, ok := toolsOf(page)
		if !ok {
			return nil, ErrOther
		}
		for j, tool := range found {
			shown, _ := tool.(map[string]any)
			if name, _ := shown["name"].(string); name == "" {
				return nil, fmt.Errorf("tool %d of page %d has no name", j+1, i+1)
			}
			tools = append(tools, shown)
		}
		if next, _ := resultOf(page)["nextCursor"].(string); next != "" && i == len(pages)-1 {
			return nil, errors.New("the list goes on at a nextCursor: save its other pages too, as a JSON array of all pages")
		}
	}
	s := &Surface{}
	s.Add(Caller{Name: caller}, tools)
	return s, nil
}

// resultOf is the result of a JSON-RPC response, or the page itself.
func resultOf(page any) map[string]any {
	object, _ := page.(map[string]any)
	if result, ok := object["result"].(map[string]any); ok {
		return result
	}
	return object
}

func toolsOf(page any) ([]any, bool) {
	tools, ok := resultOf(page)["tools"].([]any)
	return tools, ok
}

func isPage(v any) bool {
	_, ok := toolsOf(v)
	return ok
}

func parseLock(object map[string]any) (*Surface, error) {
	if object["tools_lock"] != Version {
		return nil, fmt.Errorf("tools_lock is %v: this build reads version %s", object["tools_lock"], Version)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var file lock
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	s := &Surface{}
	for _, c := range file.Callers {
		if _, twice := s.of(c.Name); twice || c.Name == "" {
			return nil, fmt.Errorf("the lock has the caller %q twice, or without a name", c.Name)
		}
		var seen []map[string]any
		for _, t := range file.Tools {
			if slices.Contains(t.Callers, c.Name) {
				seen = append(seen, t.Tool)
			}
		}
		s.Add(c, seen)
	}
	for i, t := range file.Tools {
		for _, caller := range t.Callers {
			if _, known := s.of(caller); !known {
				return nil, fmt.Errorf("tool %d of the lock is of the caller %q, who is not among its callers", i+1, caller)
			}
		}
		if name, _ := t.Tool["name"].(string); name == "" || len(t.Callers) == 0 {
			return nil, fmt.Errorf("tool %d of the lock has no name, or no callers", i+1)
		}
	}
	return s, nil
}

// fromReport takes the lists that a report has as evidence: whole ones, of callers that were there before the run, of a site
// that no check had changed. The first list of a caller counts.
func fromReport(report *reports.Report) (*Surface, error) {
	type page struct {
		tools []any
		next  string
	}
	pages := map[string]map[string]page{} // by caller, by cursor
	refused := map[string]int{}
	for _, result := range report.Results {
		for _, e := range result.Evidence {
			at, err := url.Parse(e.Request.URL)
			if err != nil || e.SiteChanged || e.Account != nil || e.Response == nil || !own(e.Identity) || slices.ContainsFunc(e.Drupal, func(u reports.Upstream) bool { return u.Fault != "" }) {
				continue
			}
			isList := strings.HasSuffix(at.Path, client.ListPath) && cmp.Or(e.Request.Method, "GET") == "GET"
			if !isList || at.RawQuery != "" && !at.Query().Has("cursor") {
				continue
			}
			cursor := at.Query().Get("cursor")
			if status := e.Response.Status; cursor == "" && (status == 401 || status == 403) {
				refused[e.Identity] = status
			}
			body, err := exact.Parse([]byte(e.Response.Body))
			tools, ok := toolsOf(body)
			if err != nil || !ok || e.Response.Status != 200 || e.Response.Truncated > 0 {
				continue
			}
			next, _ := resultOf(body)["nextCursor"].(string)
			if pages[e.Identity] == nil {
				pages[e.Identity] = map[string]page{}
			}
			if _, there := pages[e.Identity][cursor]; !there {
				pages[e.Identity][cursor] = page{tools, next}
			}
		}
	}
	s := &Surface{}
	for caller, found := range pages {
		var tools []map[string]any
		seen := map[string]bool{}
		cursor, whole := "", false
		for !seen[cursor] && !whole {
			seen[cursor] = true
			p, there := found[cursor]
			if !there {
				break
			}
			for _, t := range p.tools {
				if tool, ok := t.(map[string]any); ok {
					tools = append(tools, tool)
				}
			}
			cursor, whole = p.next, p.next == ""
		}
		if whole {
			s.Add(Caller{Name: caller}, tools)
		}
	}
	if len(s.Callers) == 0 {
		return nil, errors.New("the report holds no whole list of tools: its evidence keeps the beginning of long responses; take the tools of the bridge itself, by --url or --exec")
	}
	for caller, status := range refused {
		if _, listed := s.of(caller); !listed {
			s.Add(Caller{Name: caller, Refused: status}, nil)
		}
	}
	return s, nil
}

// own reports whether an identity of a report is a caller of the contract, and none of a check's making.
func own(identity string) bool {
	return slices.Contains([]client.Identity{client.Outsider, client.Discoverer, client.Agent, client.Agent2, client.NoRPC, client.Blocked, client.Service, client.Admin}, client.Identity(identity)) ||
		identity == client.Anonymous.String()
}
