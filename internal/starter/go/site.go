package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxBytes bounds a response of the site (upstream/huge-answer).
const maxBytes = 8 << 20

// Site is the Drupal site. Every request is made as the caller (access/credentials-forwarded).
type Site struct {
	url    string // the only host that is ever called (upstream/no-ssrf)
	client *http.Client
	calls  atomic.Int64

	mu    sync.Mutex
	found map[string]*found // by the text that holds it
}

// found is what the site lists for a caller. It is not changed.
type found struct {
	tools       []*Tool
	mayDiscover bool
}

// maxFound bounds how many lists are remembered.
const maxFound = 8

func newSite(url string, timeout time.Duration) *Site {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64 // upstream/pooled
	return &Site{url: strings.TrimRight(url, "/"), found: map[string]*found{}, client: &http.Client{
		Timeout:       timeout, // of the whole exchange, body included (upstream/timeout)
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// tools returns the tools that the caller may run, and whether the caller may discover them. The site is asked each time, but
// the same text comes again and again: it is read once.
func (s *Site) tools(ctx context.Context, caller http.Header) ([]*Tool, bool, error) {
	status, data, err := s.exchange(ctx, caller, http.MethodGet, "/jsonrpc/methods", nil)
	if err != nil {
		return nil, false, err
	}
	if status != 200 {
		return nil, false, unusable(status)
	}
	s.mu.Lock()
	f := s.found[string(data)]
	s.mu.Unlock()
	if f == nil {
		if f = read(data); f == nil {
			return nil, false, unusable(status)
		}
		s.remember(string(data), f)
	}
	return f.tools, f.mayDiscover, nil
}

func (s *Site) remember(text string, f *found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.found) >= maxFound {
		clear(s.found)
	}
	s.found[text] = f
}

// read returns what a list of methods says, or nil where it is none.
func read(data []byte) *found {
	var body struct {
		Data []json.RawMessage
		Meta json.RawMessage
	}
	if err := decode(data, &body); err != nil || body.Data == nil {
		return nil
	}
	var methods []Method
	for _, data := range body.Data {
		var m Method
		if err := json.Unmarshal(data, &m); err != nil {
			m.broken = err
		}
		methods = append(methods, m)
	}
	var meta struct{ MCP struct{ Discovery bool } }
	_ = json.Unmarshal(body.Meta, &meta) // where the site does not say it, nobody may
	return &found{toolsOf(methods), meta.MCP.Discovery}
}

// call calls a method, once: net/http does not send a POST again (invoke/runs-once).
func (s *Site) call(ctx context.Context, caller http.Header, tool *Tool, arguments json.RawMessage) (json.RawMessage, error) {
	id := s.calls.Add(1)
	var message bytes.Buffer
	if err := encode(&message, map[string]any{"jsonrpc": "2.0", "id": id, "method": tool.Name, "params": arguments}); err != nil {
		return nil, err
	}
	status, data, err := s.exchange(ctx, caller, http.MethodPost, "/jsonrpc", &message)
	if err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage // not a struct: null and absent differ
	var problem struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	var got *int64
	if err := decode(data, &body); err != nil || body["id"] != nil && json.Unmarshal(body["id"], &got) != nil {
		return nil, unusable(status)
	}
	refused, hasError := body["error"]
	result, hasResult := body["result"]
	switch {
	// Drupal sends errors without the id, under 200, 400 and 500 (upstream/id-mismatch, upstream/error-any-status).
	case hasError && !hasResult && (got == nil || *got == id) && string(refused) != "null" && json.Unmarshal(refused, &problem) == nil:
		return nil, failed(tool, arguments, problem.Code, problem.Message, problem.Data)
	case hasResult && !hasError && status == 200 && got != nil && *got == id:
		return result, nil
	}
	return nil, unusable(status)
}

// Drupal's own text on an argument has PHP's class names in it: only the name is taken (invoke/invalid-arguments-named).
var refusal = regexp.MustCompile(`^(?:The (.+?) parameter does not conform |Missing required parameter: (.+)$)`)

func failed(tool *Tool, arguments json.RawMessage, code int, message string, data json.RawMessage) *Failure {
	var text string
	_ = json.Unmarshal(data, &text) // data that is no text leaves it empty
	named := refusal.FindStringSubmatch(text)
	switch {
	case code == -32601:
		return notFound(tool.Name)
	case code == -32600 && strings.HasPrefix(text, "Access Denied"):
		return failure(403, "access_denied", "You may not run %s.", tool.Name)
	case code == -32602 && named != nil:
		f := failure(400, "invalid_params", "The argument %s of %s is missing.", named[2], tool.Name)
		if named[1] != "" {
			f = failure(400, "invalid_params", "The argument %s of %s is not valid.", named[1], tool.Name)
		}
		var given map[string]json.RawMessage
		_ = json.Unmarshal(arguments, &given) // it was read as an object before
		name := named[1] + named[2]
		f.Data = map[string]any{"parameter": name, "expected": tool.InputSchema.Properties[name], "received": given[name]}
		return f
	}
	f := failure(500, "execution_error", "The tool %s failed: %s", tool.Name, message)
	if code == -32602 {
		f = failure(400, "invalid_params", "The tool %s refused its arguments: %s", tool.Name, message)
	}
	details := map[string]any{"jsonrpc_code": code}
	if code != -32603 && data != nil { // its data is PHP's own text (invoke/no-trace-leak)
		details["jsonrpc_data"] = data
	}
	f.Data = details
	return f
}

// exchange sends one request to the site and gives the status and the whole body.
func (s *Site) exchange(ctx context.Context, caller http.Header, verb, path string, body io.Reader) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, verb, s.url+path, body) // ctx ends when the caller goes (upstream/cancel)
	if err != nil {
		return 0, nil, err
	}
	request.Header = caller.Clone()
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil { // its text has the address of the site: it is not shown
		return 0, nil, late(err, failure(503, "upstream_unavailable", "The site cannot be reached."))
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	switch {
	case err != nil || len(data) > maxBytes:
		return 0, nil, late(err, unusable(response.StatusCode))
	case response.StatusCode == 401:
		f := failure(401, "authentication_required", "The site asks for credentials.")
		f.Header = http.Header{"Www-Authenticate": response.Header.Values("WWW-Authenticate")}
		return 0, nil, f
	case response.StatusCode == 403:
		return 0, nil, failure(403, "access_denied", "The site refuses this caller.")
	}
	return response.StatusCode, data, nil
}

func late(err error, otherwise *Failure) *Failure {
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return failure(504, "upstream_timeout", "The site did not respond in time.")
	}
	return otherwise
}

func unusable(status int) *Failure {
	if status == 503 {
		return failure(503, "upstream_unavailable", "The site says that it is not available.")
	}
	return failure(502, "upstream_error", "The site's response is not usable.")
}
