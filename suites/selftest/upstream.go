package selftest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// upstream is the shape of Mutant.Upstream.
type upstream = func(next http.RoundTripper) http.RoundTripper

// roundTripper makes a function an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// onUpstream handles every request to the site in place of the transport.
func onUpstream(handle func(r *http.Request, next http.RoundTripper) (*http.Response, error)) upstream {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return handle(r, next) })
	}
}

// isCall tells a method call from discovery.
func isCall(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/jsonrpc") }

// onCall changes the JSON-RPC request of a call before it is sent.
func onCall(change func(r *http.Request, call map[string]any)) upstream {
	return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isCall(r) {
			return next.RoundTrip(r)
		}
		r = r.Clone(r.Context())
		call := decode(drain(r))
		change(r, call)
		fill(r, encode(call))
		return next.RoundTrip(r)
	})
}

// onParams changes the arguments of every call that has any.
func onParams(change func(params any) any) upstream {
	return onCall(func(_ *http.Request, call map[string]any) {
		if params, ok := call["params"]; ok {
			call["params"] = change(params)
		}
	})
}

// onArguments changes the arguments of every call, at every level.
func onArguments(change func(v any) any) upstream {
	return onParams(func(params any) any { return mapped(params, change) })
}

// onMethods changes the attributes of every method that discovery shows.
func onMethods(change func(id string, attributes map[string]any)) upstream {
	return onDiscovery(func(index map[string]any) {
		methods, _ := index["data"].([]any)
		for _, m := range methods {
			m, _ := m.(map[string]any)
			id, _ := m["id"].(string)
			if attributes, ok := m["attributes"].(map[string]any); ok {
				change(id, attributes)
			}
		}
	})
}

// onReply changes the JSON-RPC answer of a call before the bridge reads it.
func onReply(change func(reply map[string]any)) upstream {
	return onSiteAnswer(isCall, change)
}

// onDiscovery changes what the site shows of its methods.
func onDiscovery(change func(index map[string]any)) upstream {
	return onSiteAnswer(func(r *http.Request) bool { return !isCall(r) }, change)
}

func onSiteAnswer(matches func(*http.Request) bool, change func(map[string]any)) upstream {
	return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || !matches(r) {
			return resp, err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		object := decode(body)
		if err != nil || len(body) == maxAnswer || object == nil || !utf8.Valid(body) || !json.Valid(body) {
			resp.Body = resumed{io.MultiReader(bytes.NewReader(body), failing{err}, resp.Body), resp.Body}
			return resp, nil
		}
		resp.Body.Close()
		change(object)
		body = encode(object)
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Del("Content-Length")
		return resp, nil
	})
}

// resumed is a body of which some was read, as if nothing had been.
type resumed struct {
	io.Reader
	io.Closer
}

// failing gives the error with which the reading of a body ended, if any.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

func drain(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	return body
}

func fill(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// rounded gives a document back with every number as a float64 would hold it.
func rounded(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var lossy any
	if json.Unmarshal(data, &lossy) != nil {
		return v
	}
	return lossy
}
