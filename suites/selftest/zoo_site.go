package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
)

// property changes one parameter's schema of one tool, wherever it is shown.
func property(tool, param string, change func(schema map[string]any)) front {
	return onTool(func(t map[string]any) {
		input, _ := t["inputSchema"].(map[string]any)
		properties, _ := input["properties"].(map[string]any)
		if schema, ok := properties[param].(map[string]any); ok && t["name"] == tool {
			change(schema)
		}
	})
}

// become replaces a schema by others' members.
func become(members map[string]any) func(map[string]any) {
	return func(schema map[string]any) {
		clear(schema)
		for name, value := range members {
			schema[name] = value
		}
	}
}

var translateMutants = []Mutant{
	{Name: "reference-without-values", Breaks: Clauses("translate/entity-reference"), Origin: Imagined,
		Front: property("type.entity_reference", "bundle", without("enum"))},
	{Name: "reference-one-value-short", Breaks: Clauses("translate/entity-reference"), Origin: Imagined,
		Front: property("type.entity_reference", "bundle", func(s map[string]any) {
			if values, ok := s["enum"].([]any); ok {
				s["enum"] = values[1:]
			}
		})},
	{Name: "datetime-any-string", Breaks: Clauses("translate/datetime"), Origin: Imagined, Front: property("type.datetime", "value", without("format"))},
	{Name: "datetime-as-date", Breaks: Clauses("translate/datetime"), Origin: Imagined,
		Front: property("type.datetime", "value", become(map[string]any{"type": "string", "format": "date"}))},
	{Name: "formatted-text-as-string", Breaks: Clauses("translate/text-formatted"), Origin: Imagined,
		Front: property("type.text_formatted", "value", become(map[string]any{"type": "string"}))},
	{Name: "formatted-text-without-value", Breaks: Clauses("translate/text-formatted"), Origin: Imagined,
		Front: property("type.text_formatted", "value", without("required"))},
	{Name: "file-without-constraints", Breaks: Clauses("translate/file"), Origin: Imagined,
		Front: property("type.file", "value", become(map[string]any{"type": "integer"}))},
	{Name: "file-without-size", Breaks: Clauses("translate/file"), Origin: Imagined,
		Front: property("type.file", "value", become(map[string]any{"type": "string", "pattern": `\.(txt|pdf)$`}))},
	{Name: "integer-without-bounds", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
		Front: property("type.numbers", "integer", without("minimum", "maximum"))},
	{Name: "list-without-values", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
		Front: property("type.choices", "list_string", without("enum"))},
	{Name: "long-text-as-short", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
		Front: property("type.texts", "string_long", func(s map[string]any) { s["maxLength"] = 255 })},
	{Name: "uri-any-string", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
		Front: property("type.texts", "uri", without("format"))},
	{Name: "several-values-as-one", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
		Front: property("type.multiple", "any_number", become(map[string]any{"type": "string"}))},
	{Name: "more-values-than-the-field-takes", Breaks: Clauses("translate/boolean-integer-decimal-list"), Origin: Imagined,
		Front: property("type.multiple", "up_to_three", without("maxItems"))},
	{Name: "field-default-lost", Breaks: Clauses("translate/required-default"), Origin: Imagined,
		Front: property("type.required_default", "status", without("default"))},
	{Name: "field-default-false-lost", Breaks: Clauses("translate/required-default"), Origin: Imagined, Why: "what PHP takes for nothing is left out",
		Front: property("type.numbers", "boolean", without("default"))},
	{Name: "field-required-lost", Breaks: Clauses("translate/required-default"), Origin: Imagined,
		Front: onTool(func(t map[string]any) {
			if input, ok := t["inputSchema"].(map[string]any); ok && t["name"] == "type.required_default" {
				delete(input, "required")
			}
		})},
	{Name: "custom-type-unknown", Breaks: Clauses("translate/custom-type"), Origin: Imagined,
		Options: func(o *bridge.Options) { o.Types = nil }},
	{Name: "unknown-type-refuses-all", Breaks: Clauses("translate/unknown-type"), Origin: Imagined,
		Front: property("type.unknown", "value", become(map[string]any{"type": "object", "required": []any{"foam"}}))},
	{Name: "one-bad-tool-takes-all", Breaks: Clauses("translate/one-bad-tool"), Origin: Peer,
		Upstream: onDiscovery(func(index map[string]any) {
			if strings.Contains(string(encode(index)), "bad.null_schema") {
				delete(index, "data")
			}
		})},
	{Name: "bad-tools-as-they-are", Breaks: Clauses("translate/one-bad-tool"), Origin: Module,
		Front: onList(func(p *page) {
			if strings.Contains(string(p.Body), `"good.first"`) {
				p.Tools = append(p.Tools, tool{"name": "bad.null_schema", "description": "x", "inputSchema": nil})
			}
		})},
	{Name: "local-references-not-moved", Breaks: Clauses("translate/one-bad-tool"), Origin: Imagined, Why: "what a parameter's schema refers to stands elsewhere in the tool's",
		Front: property("good.references", "labels", become(map[string]any{"type": "object", "properties": map[string]any{"label": map[string]any{"$ref": "#/definitions/label"}},
			"definitions": map[string]any{"label": map[string]any{"type": "string"}}}))},
	{Name: "circular-reference-as-it-is", Breaks: Clauses("translate/one-bad-tool"), Origin: Module, Why: "a client that follows it never ends",
		Front: onList(func(p *page) {
			if strings.Contains(string(p.Body), `"good.first"`) {
				p.Tools = append(p.Tools, tool{"name": "bad.cyclic_ref", "description": "x", "inputSchema": circular})
			}
		})},
}

// circular is the schema of a tool whose parameter is nothing but itself.
var circular = map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/properties/a"}}}

var filterMutants = []Mutant{
	{Name: "exclude-forgotten", Setup: "patterns", Breaks: Clauses("filter/include-exclude", "filter/defaults-safe", "access/filtered-by-method", "filter/invoke-guarded"), Origin: Imagined,
		Options: func(o *bridge.Options) { o.Exclude = []string{"nothing.at.all"} }},
	{Name: "everything-included", Setup: "patterns", Breaks: Clauses("filter/include-exclude", "list/empty-site", "describe/hidden-404", "invoke/hidden-404", "access/filtered-by-method", "access/no-oracle"), Origin: Imagined,
		Options: func(o *bridge.Options) { o.Include = []string{"*"} }},
	{Name: "patterns-anywhere", Setup: "patterns", Breaks: Clauses("filter/include-exclude"), Origin: Imagined, Why: "an expression that is not held to both ends",
		Options: func(o *bridge.Options) { o.Include = []string{"*content.*", "*search.*", "*taxonomy.*", "*media.*"} }},
	{Name: "dot-for-any-character", Setup: "patterns", Breaks: Clauses("filter/include-exclude"), Origin: Imagined, Why: "a pattern taken for an expression",
		Options: func(o *bridge.Options) { o.Include = []string{"content*", "search.*", "taxonomy.*", "media.*"} }},
	{Name: "exclude-anywhere", Setup: "patterns", Breaks: Clauses("filter/include-exclude"), Origin: Imagined,
		Options: func(o *bridge.Options) {
			o.Exclude = []string{"system.cache_clear", "user.login", "node.delete", "*admin*"}
		}},
	{Name: "search-forgotten", Setup: "patterns", Breaks: Clauses("filter/include-exclude", "filter/defaults-safe", "invoke/answers-result", "invoke/result-exact", "invoke/runs-once", "access/filtered-by-method"), Origin: Imagined,
		Options: func(o *bridge.Options) { o.Include = []string{"content.*", "taxonomy.*", "media.*"} }},
	{Name: "filter-on-the-list-alone", Setup: "patterns", Breaks: Clauses("filter/include-exclude", "filter/invoke-guarded", "invoke/hidden-404"), Origin: Peer,
		Wired: func(site *wire) front {
			return onInvoke(func(x *exchange) {
				if x.Status == http.StatusNotFound {
					if reply := site.call(x.Request.Header.Get("Authorization"), x.invoked(), map[string]any{}); reply["result"] != nil {
						x.Set(http.StatusOK, map[string]any{"result": reply["result"]})
					}
				}
			})
		}},
	{Name: "batch-past-the-filter", Setup: "patterns", Breaks: Clauses("filter/invoke-guarded"), Origin: Imagined,
		Wired: func(site *wire) front {
			return onInvoke(func(x *exchange) {
				if !bytes.HasPrefix(bytes.TrimSpace(x.Sent), []byte("[")) {
					return
				}
				for _, call := range decode([]byte(`{"calls":` + string(x.Sent) + `}`))["calls"].([]any) {
					if call, ok := call.(map[string]any); ok && call["method"] != nil {
						site.call(x.Request.Header.Get("Authorization"), fmt.Sprint(call["method"]), map[string]any{})
					}
				}
			})
		}},
	{Name: "rate-unlimited", Setup: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Imagined,
		Options: func(o *bridge.Options) { o.RatePerSec, o.RateBurst = 1e6, 1e6 }},
	{Name: "rate-limit-till-soon", Setup: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Imagined,
		Front: onAnswer(toInvoke, func(x *exchange) {
			if x.Status == http.StatusTooManyRequests {
				x.Header.Set("Retry-After", "soon")
			}
		})},
	{Name: "rate-limit-without-retry-after", Setup: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Peer,
		Front: onAnswer(toInvoke, func(x *exchange) {
			if x.Status == http.StatusTooManyRequests {
				x.Header.Del("Retry-After")
			}
		})},
}

var upstreamMutants = []Mutant{
	{Name: "calls-as-text", Breaks: Clauses("upstream/valid-jsonrpc"), Origin: Imagined,
		Upstream: onCall(func(r *http.Request, _ map[string]any) { r.Header.Set("Content-Type", "text/plain") })},
	{Name: "site-asked-before-validation", Breaks: Clauses("upstream/eager-validation", "invoke/invalid-arguments-400", "invoke/runs-once"), Origin: Module,
		Wired: func(site *wire) front {
			return onInvoke(func(x *exchange) {
				if x.Status == http.StatusBadRequest && strings.Contains(string(x.Body), "invalid_params") {
					site.call(x.Request.Header.Get("Authorization"), x.invoked(), decode(x.Sent)["arguments"])
				}
			})
		}},
	{Name: "a-connection-for-each-call", Breaks: Clauses("upstream/pooled"), Origin: Peer,
		Upstream: func(http.RoundTripper) http.RoundTripper { return &http.Transport{DisableKeepAlives: true} }},
	{Name: "any-id-will-do", Breaks: Clauses("upstream/id-mismatch"), Origin: Peer, Upstream: onReplyTo(func(call, reply map[string]any) {
		if _, ok := reply["result"]; ok {
			reply["id"] = call["id"]
		}
	})},
	{Name: "result-beside-an-error", Breaks: Clauses("upstream/id-mismatch"), Origin: Imagined, Upstream: onReply(func(reply map[string]any) {
		if _, ok := reply["result"]; ok {
			delete(reply, "error")
		}
	})},
	{Name: "errors-need-an-id", Breaks: Clauses("upstream/id-mismatch", "upstream/error-any-status"), Origin: Peer, Upstream: onReply(func(reply map[string]any) {
		if _, has := reply["id"]; reply["error"] != nil && !has {
			delete(reply, "error")
		}
	})},
	{Name: "json-and-more-as-result", Breaks: Clauses("upstream/http-error"), Origin: Peer, Why: "a decoder that reads one value and stops", Upstream: onUpstream(firstValue)},
	{Name: "page-as-result", Breaks: Clauses("upstream/http-error"), Origin: Peer, Upstream: onUpstream(pageAsResult)},
	{Name: "result-under-500", Breaks: Clauses("upstream/http-error"), Origin: Imagined,
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && isCall(r) && resp.StatusCode == http.StatusInternalServerError && strings.Contains(peek(resp), `"result"`) {
				resp.StatusCode = http.StatusOK
			}
			return resp, err
		})},
	{Name: "site-401-as-500", Breaks: Clauses("upstream/auth-error"), Origin: Peer, Upstream: statusOfCalls(http.StatusUnauthorized, http.StatusInternalServerError)},
	{Name: "site-403-as-500", Breaks: Clauses("upstream/auth-error", "access/bad-credentials", "access/permission-revoked"), Origin: Imagined, Upstream: statusOfCalls(http.StatusForbidden, http.StatusInternalServerError)},
	{Name: "challenge-lost", Breaks: Clauses("upstream/auth-error"), Origin: Imagined,
		Front: onInvoke(func(x *exchange) { x.Header.Del("WWW-Authenticate") })},
	{Name: "waits-too-long", Breaks: Clauses("upstream/timeout"), Origin: Peer,
		Options: func(o *bridge.Options) { o.UpstreamTimeout = 2500 * time.Millisecond }},
	{Name: "waits-for-a-connection", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "the time-out counts from the connection on", Upstream: timedFromConnection},
	{Name: "lists-wait-for-good", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "only calls have a time-out", Options: func(o *bridge.Options) { o.UpstreamTimeout = time.Minute },
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !isCall(r) {
				return next.RoundTrip(r)
			}
			limited, end := context.WithTimeout(r.Context(), UpstreamTimeout)
			resp, err := next.RoundTrip(r.WithContext(limited))
			if err != nil {
				end()
				return resp, err
			}
			resp.Body = ending{resp.Body, end}
			return resp, nil
		})},
	{Name: "down-for-good", Breaks: Clauses("upstream/down-and-up"), Origin: Peer, Upstream: downForGood()},
	{Name: "works-for-those-who-left", Breaks: Clauses("upstream/cancel"), Origin: Peer,
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			lasting, end := context.WithCancel(context.WithoutCancel(r.Context()))
			time.AfterFunc(UpstreamTimeout, end)
			return next.RoundTrip(r.WithContext(lasting))
		})},
	{Name: "answers-of-any-size", Breaks: Clauses("upstream/huge-answer", "upstream/timeout"), Origin: Peer,
		Options: func(o *bridge.Options) {
			o.MaxAnswer, o.UpstreamTimeout, o.Output = 1<<30, 10*time.Second, invoke.OutputPass
		}, Claims: "-output-validation"},
	{Name: "redirects-followed", Breaks: Clauses("upstream/no-ssrf", "upstream/http-error"), Origin: Peer,
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			client := &http.Client{Transport: next}
			r = r.Clone(r.Context())
			r.RequestURI = ""
			return client.Do(r)
		})},
	{Name: "redirects-of-discovery-followed", Breaks: Clauses("upstream/no-ssrf"), Origin: Peer, Why: "calls and discovery have a client each",
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if isCall(r) {
				return next.RoundTrip(r)
			}
			r = r.Clone(r.Context())
			r.RequestURI = ""
			return (&http.Client{Transport: next}).Do(r)
		})},
	{Name: "calls-by-get", Breaks: Clauses("upstream/post-only", "invoke/runs-once", "upstream/valid-jsonrpc"), Origin: Peer,
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !isCall(r) {
				return next.RoundTrip(r)
			}
			call := drain(r)
			r = r.Clone(r.Context())
			r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0
			r.URL.RawQuery = "query=" + url.QueryEscape(string(call))
			return next.RoundTrip(r)
		})},
	{Name: "errors-under-500-lost", Breaks: Clauses("upstream/error-any-status"), Origin: Peer,
		Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && isCall(r) && resp.StatusCode >= 500 {
				resp.Body.Close()
				resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("")), 0
				resp.Header.Del("Content-Length")
			}
			return resp, err
		})},
	{Name: "silence-as-null", Breaks: Clauses("upstream/error-any-status", "upstream/id-mismatch", "upstream/http-error", "upstream/huge-answer"), Origin: Module,
		Free: Clauses("upstream/down-and-up"), // 502 where a kept connection broke, 503 where none could be made
		Front: onInvoke(func(x *exchange) {
			if x.Status == http.StatusBadGateway && len(x.Body) > 0 {
				x.Set(http.StatusOK, map[string]any{"result": nil})
			}
		})},
}

// connectTime is how long a client that has a time for connecting of its own waits: longer than any bridge may.
const connectTime = 4 * time.Second

// timedFromConnection lets the bridge's time-out count only once there is a connection to the site.
func timedFromConnection(next http.RoundTripper) http.RoundTripper {
	next.(*http.Transport).DialContext = (&net.Dialer{Timeout: connectTime}).DialContext
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		lasting, end := context.WithCancel(context.WithoutCancel(r.Context()))
		connected := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { context.AfterFunc(r.Context(), end) }}
		resp, err := next.RoundTrip(r.WithContext(httptrace.WithClientTrace(lasting, connected)))
		if err != nil {
			end()
		}
		return resp, err
	})
}

// onReplyTo changes the answer of a call with the call beside it.
func onReplyTo(change func(call, reply map[string]any)) upstream {
	return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isCall(r) {
			return next.RoundTrip(r)
		}
		sent := drain(r)
		r = r.Clone(r.Context())
		fill(r, sent)
		return onReply(func(reply map[string]any) { change(decode(sent), reply) })(next).RoundTrip(r)
	})
}

// peek reads an answer's body and puts it back.
func peek(resp *http.Response) string {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKept))
	if err != nil {
		body = nil
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	return string(body)
}

// pageAsResult takes an HTML page for the method's result.
func pageAsResult(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if !isCall(r) {
		return next.RoundTrip(r)
	}
	sent := drain(r)
	r = r.Clone(r.Context())
	fill(r, sent)
	resp, err := next.RoundTrip(r)
	if err != nil || !strings.Contains(resp.Header.Get("Content-Type"), "html") || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	reply := encode(map[string]any{"jsonrpc": "2.0", "id": decode(sent)["id"], "result": peek(resp)})
	resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(reply)), int64(len(reply))
	resp.Header.Set("Content-Type", "application/json")
	resp.Header.Del("Content-Length")
	return resp, nil
}

// firstValue leaves out what comes behind the first JSON value of an answer.
func firstValue(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || !isCall(r) {
		return resp, err
	}
	var value json.RawMessage
	if body := peek(resp); json.NewDecoder(strings.NewReader(body)).Decode(&value) == nil && len(value) < len(body) && len(body) < maxKept {
		resp.Body.Close()
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(value)), int64(len(value))
		resp.Header.Del("Content-Length")
	}
	return resp, nil
}

// ending is a body with whose end something else ends.
type ending struct {
	io.ReadCloser
	end func()
}

func (e ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// statusOfCalls takes one status of a call for another.
func statusOfCalls(is, becomes int) upstream {
	return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && isCall(r) && resp.StatusCode == is {
			resp.StatusCode = becomes
		}
		return resp, err
	})
}

// downForGood never tries again once a connection was refused.
func downForGood() upstream {
	var down atomic.Bool
	return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if down.Load() {
			return nil, fmt.Errorf("the site is down")
		}
		resp, err := next.RoundTrip(r)
		if err != nil && strings.Contains(err.Error(), "connection re") && r.Context().Err() == nil {
			down.Store(strings.Contains(err.Error(), "refused"))
		}
		return resp, err
	})
}

var loadMutants = []Mutant{
	{Name: "answers-mixed-up-under-load", Breaks: Clauses("load/concurrent-exact"), Free: Clauses("access/no-cross-talk"), Origin: Peer, Front: mixedUp()},
	{Name: "equal-calls-at-once-run-once", Breaks: Clauses("load/concurrent-exact", "load/slow-method-isolated"), Origin: Imagined, Why: "calls share a flight as discovery does", Front: sharedCalls()},
	{Name: "one-call-at-a-time", Breaks: Clauses("load/slow-method-isolated"), Origin: Peer,
		Upstream: func(next http.RoundTripper) http.RoundTripper {
			var line sync.Mutex
			return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if isCall(r) {
					line.Lock()
					defer line.Unlock()
				}
				return next.RoundTrip(r)
			})(next)
		}},
	{Name: "page-costs-the-catalogue", Breaks: Clauses("load/large-catalogue"), Origin: Imagined,
		Front: onList(func(p *page) {
			for cursor := p.Object["nextCursor"]; cursor != nil && cursor != "" && p.Cursor == ""; {
				cursor = p.Ask(http.MethodGet, p.Request.URL.Path+"?cursor="+url.QueryEscape(fmt.Sprint(cursor)), nil).Object()["nextCursor"]
			}
		})},
	{Name: "list-as-slow-as-discovery", Breaks: Clauses("load/discovery-budget"), Free: Clauses("load/large-catalogue"), Origin: Imagined, Front: slowLists()},
}

// sharedCalls gives a caller's equal calls that are under way at once one run.
func sharedCalls() front {
	type flight struct {
		landed chan struct{}
		answer *exchange
	}
	var mu sync.Mutex
	flights := map[string]*flight{}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !toInvoke(r) || !small(r) {
				next.ServeHTTP(w, r)
				return
			}
			body := drain(r)
			key := r.Method + r.Header.Get("Authorization") + string(body)
			mu.Lock()
			f, under := flights[key]
			if !under {
				f = &flight{landed: make(chan struct{})}
				flights[key] = f
			}
			mu.Unlock()
			if !under {
				f.answer = answer(next, r, body)
				mu.Lock()
				delete(flights, key)
				mu.Unlock()
				close(f.landed)
			}
			<-f.landed
			own := *f.answer
			own.send(w)
		})
	}
}

// mixedUp gives a caller another's answer when many invoke at once.
func mixedUp() front {
	var busy atomic.Int64
	var last atomic.Pointer[[]byte]
	return func(next http.Handler) http.Handler {
		changed := onInvoke(func(x *exchange) {
			body := x.Body
			if other := last.Swap(&body); other != nil && busy.Load() > 48 && x.Status == http.StatusOK {
				x.Body = *other
			}
		})(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			busy.Add(1)
			defer busy.Add(-1)
			changed.ServeHTTP(w, r)
		})
	}
}

// slowLists take as long as a caller's first one, as those that ask the site every time.
func slowLists() front {
	first := newTable[time.Duration]()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !toList(r) {
				next.ServeHTTP(w, r)
				return
			}
			began := time.Now()
			key := r.Header.Get("Authorization")
			cost, known := first.get(key)
			if known && cost > 100*time.Millisecond {
				time.Sleep(cost)
			}
			next.ServeHTTP(w, r)
			first.keep(key, time.Since(began))
		})
	}
}
