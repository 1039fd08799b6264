package discovery

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"golang.org/x/sync/singleflight"

	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/filter"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// set is what the bridge makes of one response of the site. Callers with the same response share one set, and sets share
// the tools that they have in common.
type set struct {
	catalog     *catalog.Catalog
	rights      rights // of the caller who received the response
	diagnostics []translate.Diagnostic
	nothing     string        // why no method is a tool; "": one is, or there is no method
	shelf       *shelf        // nil: the catalog's tools have their schemas
	colliding   []string      // tools whose names are taken, to some clients
	made        []*translated // of which the catalog's tools are, to be shared as long as the set is there
	response    Response      // what it was made of, where other callers' sets are made of it as well
	bytes       int           // what it takes, about
	place       *list.Element // among the kept; nil: it is not there
}

// rights are what the site's response says of the caller, beside the tools.
type rights struct {
	discover   bool // may list and describe
	administer bool // sees the method that stands for administering
}

// rightsIn reads the caller's rights off a description.
func (r Rules) rightsIn(d Description) rights {
	return rights{discover: d.MayDiscover, administer: r.AdminMethod != "" &&
		slices.ContainsFunc(d.Methods, func(m Described) bool { return m.ID == r.AdminMethod })}
}

// Exposure is what makes a method a tool.
type Exposure string

// The ways. Auto takes the attribute where the site shows it and patterns where it does not.
const (
	ExposeAuto      Exposure = "auto"
	ExposeAttribute Exposure = "attribute"
	ExposePatterns  Exposure = "patterns"
)

// Rules say which methods become tools, and how.
type Rules struct {
	Expose      Exposure
	Include     []string // patterns of ids; nil: every one with the attribute, the safe defaults without
	Exclude     []string // likewise
	ReadOnly    bool     // only tools that change nothing
	Naming      filter.Naming
	PageSize    int
	AdminMethod string // callers who see this method may administer the bridge; "": none
	Translator  translate.Translator
	Lazy        *upstream.Client // where schemas are fetched when first needed; nil: the site's list has them
}

// picker decides which methods are tools.
type picker struct {
	rules            Rules
	marked, unmarked filter.Patterns // for sites that show the attribute, and for those that do not
}

func newPicker(r Rules) (picker, error) {
	or := func(configured, otherwise []string) []string {
		if configured != nil {
			return configured
		}
		return otherwise
	}
	marked, err := filter.NewPatterns(or(r.Include, []string{"*"}), r.Exclude)
	if err != nil {
		return picker{}, err
	}
	unmarked, err := filter.NewPatterns(or(r.Include, filter.DefaultInclude), or(r.Exclude, filter.DefaultExclude))
	return picker{r, marked, unmarked}, err
}

// exposed reports whether a described method is to be a tool.
func (p picker) exposed(d Description, m Described) bool {
	if p.byAttribute(d) && !m.Marked {
		return false
	}
	return p.patterns(d).Match(m.ID) && (!p.rules.ReadOnly || readsOnly(m))
}

// byAttribute reports whether only methods with the McpTool attribute are tools.
func (p picker) byAttribute(d Description) bool {
	return p.rules.Expose == ExposeAttribute || p.rules.Expose != ExposePatterns && d.Extension
}

// patterns are those that a tool's id has to match.
func (p picker) patterns(d Description) filter.Patterns {
	if p.byAttribute(d) {
		return p.marked
	}
	return p.unmarked
}

// readsOnly reports whether a method changes nothing: its annotation says so or, where it is silent, its id does.
func readsOnly(m Described) bool {
	if m.ReadOnly != nil {
		return *m.ReadOnly
	}
	return !m.Destructive && filter.ReadsByName(m.ID)
}

// builder makes sets and keeps what can be shared, as long as anybody uses it.
type builder struct {
	rules  Rules
	picker picker
	keep   bool // the responses that sets are made of
	sets   pool[[sha256.Size]byte, set]
	tools  pool[[sha256.Size]byte, translated]
	forms  pool[[sha256.Size]byte, schema.Lazy] // of schemas, by content
	logger *slog.Logger
}

// translated is a tool with what was said about it; tool is nil when the method is in quarantine.
type translated struct {
	tool        *catalog.Tool
	diagnostics []translate.Diagnostic
}

func newBuilder(rules Rules, keep bool, logger *slog.Logger) (*builder, error) {
	p, err := newPicker(rules)
	if err != nil {
		return nil, err
	}
	return &builder{rules: rules, picker: p, keep: keep, logger: logger}, nil
}

// build returns the set of a response, with references that take the values of targets. Within one epoch the same response
// gives the same set.
func (b *builder) build(ctx context.Context, source Source, a Response, targets map[string][]string, epoch string) (*set, error) {
	values, err := json.Marshal(targets)
	if err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	return b.sets.get(a.sum(values, []byte(epoch)), func() (*set, error) {
		d, err := source.Read(a)
		if err != nil {
			return nil, err
		}
		s, err := b.assemble(ctx, d, targets)
		if err != nil {
			return nil, err
		}
		s.bytes = timesBytes * a.held
		if b.keep {
			s.response = a
			s.response.long = false
		}
		for i, note := range s.diagnostics {
			if i == maxLogged {
				b.logger.Warn("more methods left out or repaired; all are in the diagnostics", "more", len(s.diagnostics)-i)
				break
			}
			if note.Quarantined {
				b.logger.Warn("method left out", "method", note.Method, "problem", note.Problem)
			}
		}
		if n := len(s.colliding); n > 0 {
			b.logger.Warn("tools have the same name to some clients, which may drop all tools", "tools", n, "first", s.colliding[0])
		}
		if s.nothing != "" {
			b.logger.Warn("no method is a tool", "problem", s.nothing)
		}
		return s, nil
	})
}

// What is said of one set: diagnostics in all, and lines of the log.
const (
	maxDiagnostics = 1000
	maxLogged      = 100
)

// assemble translates the exposed methods, tool by tool: one that cannot be translated costs itself only.
func (b *builder) assemble(ctx context.Context, d Description, targets map[string][]string) (*set, error) {
	s := &set{rights: b.rules.rightsIn(d)}
	if s.nothing = b.picker.nothing(d); s.nothing != "" {
		s.note(translate.Diagnostic{Problem: s.nothing})
	}
	if d.LeftOut {
		s.note(translate.Diagnostic{Quarantined: true, Problem: fmt.Sprintf(
			"the site lists more than the bridge takes (%d methods, %d MiB in all, %d MiB each); the others are left out", maxMethods, maxHeld>>20, maxMethod>>20)})
	}
	tr := b.rules.Translator
	tr.Targets = targets
	var methods []Described
	var ids []string
	seen := map[string]bool{}
	for _, m := range d.Methods {
		switch {
		case m.Err != nil:
			s.quarantine(m.ID, m.Err)
		case !b.picker.exposed(d, m):
		case seen[m.ID]:
			s.quarantine(m.ID, fmt.Errorf("the site lists it twice"))
		default:
			seen[m.ID] = true
			methods, ids = append(methods, m), append(ids, m.ID)
		}
	}
	if b.rules.Lazy != nil {
		s.shelf = &shelf{site: b.rules.Lazy, rules: b.rules, compile: b.compile}
	}
	var tools []*catalog.Tool
	for i, name := range b.rules.Naming.Names(ids) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.shelf != nil {
			method, err := methods[i].Method()
			if err != nil {
				return nil, err // it was read before
			}
			tools = append(tools, b.stub(method, name))
			continue
		}
		t := b.translate(tr, methods[i], name)
		s.note(t.diagnostics...)
		if t.tool != nil {
			s.made = append(s.made, t)
			tools = append(tools, t.tool)
		}
	}
	s.collisions(tools)
	if d.LeftOut && len(tools) == 0 {
		return nil, errors.New("the site lists more than the bridge takes, and no tool before that")
	}
	s.catalog = catalog.New(tools, b.rules.PageSize)
	return s, nil
}

// collisions notes tools whose names are the same to clients that allow only letters, digits, _ and - in a name, fold case
// and cut it at 64 characters: some such clients drop all tools then.
func (s *set) collisions(tools []*catalog.Tool) {
	const longest = 64
	names := map[string]string{}
	for _, t := range tools {
		plain := strings.Map(func(r rune) rune {
			switch {
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
				return r
			}
			return '_'
		}, t.Name)
		plain = plain[:min(len(plain), longest)]
		if other, taken := names[plain]; taken {
			s.note(translate.Diagnostic{Method: fault.Brief(t.Method), Problem: fmt.Sprintf(
				"its name %q is the same as %q to clients that replace characters, fold case or cut names: %s; see the setting naming",
				fault.Brief(t.Name), fault.Brief(other), plain)})
			s.colliding = append(s.colliding, fault.Brief(t.Name))
			continue
		}
		names[plain] = t.Name
	}
}

func (s *set) quarantine(id string, err error) {
	s.note(translate.Diagnostic{Method: fault.Brief(id), Problem: err.Error(), Quarantined: true})
}

// note keeps a diagnostic, unless there are too many or the one before it says the same.
func (s *set) note(notes ...translate.Diagnostic) {
	for _, n := range notes {
		last := len(s.diagnostics) - 1
		switch {
		case last >= 0 && s.diagnostics[last] == n:
		case last+1 == maxDiagnostics:
			s.diagnostics = append(s.diagnostics, translate.Diagnostic{Problem: "there are more diagnostics than these"})
		case last+1 < maxDiagnostics:
			s.diagnostics = append(s.diagnostics, n)
		}
	}
}

// translate makes a tool of a method, once for all sets that hold it.
func (b *builder) translate(tr translate.Translator, m Described, name string) *translated {
	key := slices.Concat([]byte(name), []byte{0}, m.Raw)
	if len(tr.Targets) > 0 {
		if method, err := m.Method(); err == nil {
			for _, target := range tr.TargetsOf(method) {
				key = fmt.Appendf(key, "\x00%q", tr.Targets[target])
			}
		}
	}
	t, _ := b.tools.get(sha256.Sum256(key), func() (*translated, error) {
		method, err := m.Method()
		var definition catalog.Definition
		var notes []translate.Diagnostic
		if err == nil {
			definition, notes, err = tr.Tool(method)
		}
		if err != nil {
			notes = append(notes, translate.Diagnostic{Method: fault.Brief(m.ID), Problem: err.Error(), Quarantined: true})
			return &translated{diagnostics: notes}, nil
		}
		definition.Name = name
		return &translated{tool: catalog.NewTool(definition, b.compile), diagnostics: notes}, nil
	})
	return t
}

// compile returns the compiled form of a schema, one for all tools that have the same.
func (b *builder) compile(doc json.RawMessage) *schema.Lazy {
	form, _ := b.forms.get(sha256.Sum256(doc), func() (*schema.Lazy, error) { return schema.NewLazy(doc), nil })
	return form
}

// pool shares values by key for as long as anybody holds them. The zero value is ready.
type pool[K interface{ ~[sha256.Size]byte }, V any] struct {
	flights singleflight.Group
	mu      sync.Mutex
	m       map[K]weak.Pointer[V]
}

// get returns the value of a key, and makes it where there is none. A key never waits for the value of another one.
func (p *pool[K, V]) get(key K, build func() (*V, error)) (*V, error) {
	if v := p.held(key); v != nil {
		return v, nil
	}
	made, err, _ := p.flights.Do(string(key[:]), func() (any, error) {
		if v := p.held(key); v != nil {
			return v, nil
		}
		v, err := build()
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.m == nil {
			p.m = map[K]weak.Pointer[V]{}
		}
		p.m[key] = weak.Make(v)
		runtime.AddCleanup(v, p.forget, key)
		return v, nil
	})
	v, _ := made.(*V)
	return v, err
}

func (p *pool[K, V]) held(key K) *V {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m[key].Value()
}

// forget drops a key whose value is gone, unless another has taken its place.
func (p *pool[K, V]) forget(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, ok := p.m[key]; ok && w.Value() == nil {
		delete(p.m, key)
	}
}

// all gives every value that is held.
func (p *pool[K, V]) all() []*V {
	p.mu.Lock()
	defer p.mu.Unlock()
	var values []*V
	for _, w := range p.m {
		if v := w.Value(); v != nil {
			values = append(values, v)
		}
	}
	return values
}
