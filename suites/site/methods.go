package site

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/published"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Methods is what a run knows of the methods of the site behind the bridge: a mock knows all, a real site is asked. What
// cannot be known of a real one ends the running check as not testable, with the reason.
type Methods interface {
	Name() string
	// Methods lists them in the site's order: a mock's all, of a real site those that a caller of the run may run.
	Methods() []fixtures.Method
	// MayUse reports whether the caller may use JSON-RPC at all.
	MayUse(who client.Identity) bool
	// MayRun reports whether the caller may run a method by JSON-RPC.
	MayRun(who client.Identity, m *fixtures.Method) bool
	// Unknown says why it is not known what the caller may run; "" where it is.
	Unknown(who client.Identity) string
	// Marks reports whether it is known which methods carry the McpTool attribute.
	Marks() bool
}

// Real is a site of which a run knows nothing but its URL, and reads what it publishes, as each of its callers.
type Real struct {
	base   *url.URL
	client *http.Client
	as     Reader

	mu    sync.Mutex
	reads map[client.Identity]reading
	all   func() []fixtures.Method // of all readers
}

// reading is what a site publishes to one caller, or why that is not known.
type reading struct {
	methods []fixtures.Method
	marks   bool
	refused bool // the caller may not use JSON-RPC
	unknown string
}

// readers are the callers by whose credentials the methods of a real site are read, beside those that a check needs.
var readers = []client.Identity{client.Agent, client.Agent2, client.Discoverer, client.Outsider, client.Service, client.Admin}

// Reader is who reads a real site, and how.
type Reader struct {
	Context     context.Context // of the run
	Transport   http.RoundTripper
	Credentials map[client.Identity]client.Credentials
	Timeout     time.Duration // of one request
	Pace        func()        // waits until the run may send its next request
	Redact      *redact.Redactor
}

// NewReal reads the site at a base URL as the agent. It fails where the site does not show the agent its methods.
func NewReal(base *url.URL, as Reader) (*Real, error) {
	s := &Real{base: base, as: as, reads: map[client.Identity]reading{}}
	s.client = &http.Client{Transport: as.Transport, Timeout: as.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s.all = sync.OnceValue(s.join)
	if why := s.Unknown(client.Agent); why != "" {
		return nil, errors.New(why)
	}
	return s, nil
}

// Name is the site's host.
func (s *Real) Name() string { return s.base.Host }

func (s *Real) read(who client.Identity) reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.reads[who]
	if !ok {
		r = s.ask(who)
		s.reads[who] = r
	}
	return r
}

func (s *Real) ask(who client.Identity) reading {
	creds, ok := s.as.Credentials[who]
	if !ok && who != client.Anonymous {
		return reading{unknown: fmt.Sprintf("there are no credentials for %s", who)}
	}
	s.as.Pace() // the request says that the run has ended
	doc, err := published.Read(s.as.Context, s.client, s.base, creds.Apply)
	var refused *published.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden && who != client.Agent,
		errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && (who == client.Anonymous || who == client.Blocked):
		return reading{refused: true}
	case err != nil:
		return reading{unknown: fmt.Sprintf("the site %s does not show %s its methods: %s", s.Name(), who,
			exact.Cut(client.OneLine(s.as.Redact.Text(err.Error())), 200))}
	}
	return reading{methods: doc.Methods, marks: doc.Marks}
}

// Methods are those of the callers that the site shows any.
func (s *Real) Methods() []fixtures.Method { return s.all() }

func (s *Real) join() []fixtures.Method {
	all, seen := []fixtures.Method{}, map[string]bool{}
	for _, who := range readers {
		for _, m := range s.read(who).methods {
			if !seen[m.ID] {
				seen[m.ID] = true
				all = append(all, m)
			}
		}
	}
	return all
}

// MayUse reports whether the site shows the caller a list of methods, though it may be empty.
func (s *Real) MayUse(who client.Identity) bool {
	if why := s.Unknown(who); why != "" {
		panic(NotTestable(why))
	}
	return !s.read(who).refused
}

// MayRun reports whether the site shows the method to the caller.
func (s *Real) MayRun(who client.Identity, m *fixtures.Method) bool {
	if why := s.Unknown(who); why != "" {
		panic(NotTestable(why))
	}
	return slices.ContainsFunc(s.read(who).methods, func(shown fixtures.Method) bool { return shown.ID == m.ID })
}

// Unknown is why the site was not read as the caller.
func (s *Real) Unknown(who client.Identity) string { return s.read(who).unknown }

// Marks reports whether the site shows any caller the McpTool attribute.
func (s *Real) Marks() bool {
	return slices.ContainsFunc(readers, func(who client.Identity) bool { return s.read(who).marks })
}

// Changed reports whether the site shows a caller other methods than it did when it was first read.
func (s *Real) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for who, before := range s.reads {
		if before.unknown != "" {
			continue
		}
		now := s.ask(who)
		same := slices.EqualFunc(before.methods, now.methods, func(x, y fixtures.Method) bool { return reflect.DeepEqual(x, y) })
		if now.unknown != "" || !same {
			return true
		}
	}
	return false
}
