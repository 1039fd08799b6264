package mutants

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// transport is the type of Mutant.Transport.
type transport = func(next http.RoundTripper) http.RoundTripper

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// onSiteRequest handles every request to the site instead of the transport.
func onSiteRequest(handle func(r *http.Request, next http.RoundTripper) (*http.Response, error)) transport {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return handle(r, next) })
	}
}

// isCall reports whether a request is a method call; the others are discovery.
func isCall(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/jsonrpc") }

func isDiscovery(r *http.Request) bool { return !isCall(r) }

// onSiteHeader changes the header of every request to the site.
func onSiteHeader(change func(h http.Header)) transport {
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		r = r.Clone(r.Context())
		change(r.Header)
		return next.RoundTrip(r)
	})
}

// onSiteCall handles every call instead of the transport, given the body of its request.
func onSiteCall(handle func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error)) transport {
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isCall(r) {
			return next.RoundTrip(r)
		}
		sent := readBody(r)
		return handle(withBody(r, sent), sent, next)
	})
}

// onHTTPResponse changes the HTTP responses of the site to the requests that match.
func onHTTPResponse(matches func(*http.Request) bool, change func(resp *http.Response)) transport {
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && matches(r) {
			change(resp)
		}
		return resp, err
	})
}

// onCallResponse changes the HTTP responses to calls.
func onCallResponse(change func(resp *http.Response)) transport {
	return onHTTPResponse(isCall, change)
}

// replaceBody replaces the body of a response, which was read.
func replaceBody(resp *http.Response, body string) {
	resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
}

// onCall changes the JSON-RPC request of a call before it is sent.
func onCall(change func(r *http.Request, call map[string]any)) transport {
	return onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
		call := decode(sent)
		change(r, call)
		setBody(r, encode(call))
		return next.RoundTrip(r)
	})
}

// oneAtATime sends the requests that match one after the other.
func oneAtATime(matches func(*http.Request) bool) transport {
	var line sync.Mutex
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if matches(r) {
			line.Lock()
			defer line.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// onParams changes the arguments of every call that has any.
func onParams(change func(params any) any) transport {
	return onCall(func(_ *http.Request, call map[string]any) {
		if params, ok := call["params"]; ok {
			call["params"] = change(params)
		}
	})
}

// onMethods changes the attributes of every method that discovery shows.
func onMethods(change func(id string, attributes map[string]any)) transport {
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

// withoutMethods leaves out of discovery the methods that a test finds.
func withoutMethods(found func(m map[string]any) bool) transport {
	return onDiscovery(func(index map[string]any) {
		methods, _ := index["data"].([]any)
		index["data"] = slices.DeleteFunc(methods, func(m any) bool { return found(m.(map[string]any)) })
	})
}

// onReply changes the JSON-RPC response to a call before the bridge reads it.
func onReply(change func(reply map[string]any)) transport { return onSiteResponse(isCall, change) }

// onDiscovery changes what the site shows of its methods.
func onDiscovery(change func(index map[string]any)) transport {
	return onSiteResponse(isDiscovery, change)
}

func onSiteResponse(matches func(*http.Request) bool, change func(map[string]any)) transport {
	return onHTTPResponse(matches, func(resp *http.Response) {
		body, err := readAhead(resp)
		object := decode(body)
		if err == nil && len(body) < testbed.MaxResponse && object != nil && utf8.Valid(body) && json.Valid(body) {
			change(object)
			replaceBody(resp, string(encode(object)))
		}
	})
}

// readAhead reads the body of a response up to the bound of the bridge, and puts it back with the error that ended it.
func readAhead(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, testbed.MaxResponse))
	resp.Body = resumed{io.MultiReader(bytes.NewReader(body), failing{err}, resp.Body), resp.Body}
	return body, err
}

// resumed is a body with the part that was read put back.
type resumed struct {
	io.Reader
	io.Closer
}

// failing returns the error with which the reading of a body ended, if any.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// siteClient sends requests of a mutant to the site, past the bridge.
type siteClient struct {
	site      string
	transport http.RoundTripper
}

// call calls a method with an Authorization header and returns the JSON-RPC response; nil when there is none.
func (w *siteClient) call(authorization, method string, params any) map[string]any {
	return w.send(http.MethodPost, "/jsonrpc", authorization, encode(map[string]any{"jsonrpc": "2.0", "id": "mutant", "method": method, "params": params}))
}

// send sends a request with an Authorization header and returns the object in the response; nil when there is none.
func (w *siteClient) send(verb, path, authorization string, body []byte) map[string]any {
	req, err := http.NewRequest(verb, w.site+path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	return decode(reply)
}

// visit sends a GET to any address, and drops the response.
func (w *siteClient) visit(ctx context.Context, address, authorization string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", authorization)
	if resp, err := w.transport.RoundTrip(req); err == nil {
		resp.Body.Close()
	}
}

// run replaces the response to an invoke by the site's response to the call with an Authorization header.
func (w *siteClient) run(x *exchange, authorization string) {
	arguments := decode(x.Sent)["arguments"]
	reply := w.call(authorization, x.invoked(), arguments)
	if result, ok := reply["result"]; ok {
		x.Set(http.StatusOK, map[string]any{"result": result})
		return
	}
	message, _ := objectIn(reply, "error")["message"].(string)
	x.Refuse(http.StatusInternalServerError, "execution_error", message)
}

// basicAuth returns the Authorization header of a built-in account.
func basicAuth(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+user+"-pass"))
}

// hides reports whether the site shows an account a method that is no tool.
func (w *siteClient) hides(authorization, id string) bool {
	attributes, shown := w.method(authorization, id)
	return shown && attributes["mcpTool"] == nil
}

// method returns the attributes of a method as the site shows it to an account.
func (w *siteClient) method(authorization, id string) (attributes map[string]any, shown bool) {
	methods, _ := w.send(http.MethodGet, "/jsonrpc/methods", authorization, nil)["data"].([]any)
	for _, m := range methods {
		if m, _ := m.(map[string]any); m["id"] == id {
			attributes, _ = m["attributes"].(map[string]any)
			return attributes, true
		}
	}
	return nil, false
}

// onReplyError changes the JSON-RPC errors of the site.
func onReplyError(change func(e map[string]any)) transport {
	return onReply(func(reply map[string]any) {
		if e, ok := reply["error"].(map[string]any); ok {
			change(e)
		}
	})
}

// recodeReplies gives the site's JSON-RPC errors of one code another.
func recodeReplies(from string, to int) transport {
	return onReplyError(func(e map[string]any) {
		if numberText(e["code"]) == from {
			e["code"] = to
		}
	})
}

// resendCalls sends a call a second time if the first response is as wanted.
func resendCalls(wanted func(r *http.Request, resp *http.Response, err error) bool) transport {
	return onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if !wanted(r, resp, err) {
			return resp, err
		}
		if err == nil {
			_, _ = io.CopyN(io.Discard, resp.Body, testbed.MaxResponse) // so that the connection is reused
			resp.Body.Close()
		}
		return next.RoundTrip(withBody(r, sent))
	})
}

// hedge sends a call for which the site takes longer a second time, and takes the response to the first.
func hedge(after time.Duration) transport {
	return onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
		second := time.AfterFunc(after, func() {
			if resp, err := next.RoundTrip(withBody(r, sent)); err == nil {
				resp.Body.Close()
			}
		})
		defer second.Stop()
		return next.RoundTrip(r)
	})
}

// openSilently fails every call for a while after some failures in a row, without saying for how long. What is none resets their
// number, where it is a response.
func openSilently(after int64, pause time.Duration, fails func(resp *http.Response, err error) bool) transport {
	var failed, until atomic.Int64
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if time.Now().UnixNano() < until.Load() {
			return nil, errors.New("the circuit is open")
		}
		resp, err := next.RoundTrip(r)
		switch {
		case fails(resp, err):
			if failed.Add(1) >= after {
				until.Store(time.Now().Add(pause).UnixNano())
			}
		case err == nil:
			failed.Store(0)
		}
		return resp, err
	})
}
