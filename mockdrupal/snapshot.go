package mockdrupal

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// snapshot is one immutable state of the site, with what is computed once.
type snapshot struct {
	site *fixtures.Site
	*offer
	users  map[string]*fixtures.User // by name in lower case: Drupal accepts a name in any letter case
	tokens map[string]fixedToken
}

// offer is what a site offers, independent of its users. Snapshots of sites with the same methods share it.
type offer struct {
	methods map[string]*method
	order   []*method
	slashed []*method  // those with a slash in the id
	classes [][]string // the distinct permission sets that methods ask for
	docs    discoveryCache
}

// fixedToken is a bearer token of the site file and whose it is.
type fixedToken struct {
	user  *fixtures.User
	token *fixtures.Token
}

// method is a fixture's method.
type method struct {
	*fixtures.Method
	*reading
	class int // index into snapshot.classes
}

// reading is what is computed of a method once; snapshots in which the method is the same share it.
type reading struct {
	once   sync.Once
	params []param
	out    php.Value // what output says, nil when there is none
	shown  atomic.Pointer[shownMethod]
}

// shownMethod is a method's document in discovery, as it was last shown.
type shownMethod struct {
	base       string
	extensions bool
	document   []byte
}

type param struct {
	*fixtures.Param
	key    php.Key
	schema php.Value
}

// newSnapshot prepares a site to be served; before is the snapshot that it replaces, nil at first.
func newSnapshot(site *fixtures.Site, before *snapshot) *snapshot {
	s := &snapshot{site: site, users: map[string]*fixtures.User{}, tokens: map[string]fixedToken{}}
	if before.offersTheSame(site) {
		s.offer = before.offer
	} else {
		s.offer = newOffer(site, before)
	}
	for i := range site.Users {
		u := &site.Users[i]
		s.users[strings.ToLower(u.Name)] = u
		for j := range u.Tokens {
			s.tokens[u.Tokens[j].Value] = fixedToken{u, &u.Tokens[j]}
		}
	}
	return s
}

// offersTheSame reports whether a site shares its methods with that of the snapshot. A nil snapshot has none.
func (s *snapshot) offersTheSame(site *fixtures.Site) bool {
	if s == nil || s.site.Extensions != site.Extensions {
		return false
	}
	mine, its := s.site.Methods, site.Methods
	return len(mine) > 0 && len(mine) == len(its) && &mine[0] == &its[0]
}

func newOffer(site *fixtures.Site, before *snapshot) *offer {
	o := &offer{methods: make(map[string]*method, len(site.Methods)), order: make([]*method, 0, len(site.Methods))}
	classes := map[string]int{}
	for i := range site.Methods {
		m := &method{Method: &site.Methods[i], reading: before.readingOf(&site.Methods[i])}
		name := strings.Join(m.Access, "\x00")
		class, known := classes[name]
		if !known {
			class = len(o.classes)
			classes[name] = class
			o.classes = append(o.classes, m.Access)
		}
		m.class = class
		if _, twice := o.methods[m.ID]; !twice {
			o.methods[m.ID] = m
		}
		o.order = append(o.order, m)
		if strings.Contains(m.ID, "/") {
			o.slashed = append(o.slashed, m)
		}
	}
	return o
}

// readingOf is that of the same method before, or a new one. A nil snapshot has none.
func (s *snapshot) readingOf(m *fixtures.Method) *reading {
	if s != nil {
		if old, ok := s.methods[m.ID]; ok && readsAs(old.Method, m) {
			return old.reading
		}
	}
	return &reading{}
}

// readsAs reports whether two methods differ in nothing but what they do.
func readsAs(a, b *fixtures.Method) bool {
	one, two := *a, *b
	one.Behaviour, two.Behaviour = fixtures.Behaviour{}, fixtures.Behaviour{}
	return reflect.DeepEqual(&one, &two)
}

// parameters returns the method's parameters with their schemas as PHP values.
func (m *method) parameters() []param {
	m.once.Do(func() {
		m.params = make([]param, len(m.Params))
		for i := range m.Params {
			p := &m.Params[i]
			schema, err := php.Decode(p.Resolved())
			if err != nil {
				schema = nil // a poisoned schema accepts anything
			}
			m.params[i] = param{Param: p, key: php.KeyOf(p.Name), schema: schema}
		}
		if v, err := php.Decode(m.Output); err == nil {
			m.out = v
		}
	})
	return m.params
}

// output returns the schema of the method's result as PHP has it; nil when there is none.
func (m *method) output() php.Value {
	m.parameters()
	return m.out
}

// account returns the account with this name, in any letter case; nil when there is none.
func (s *snapshot) account(name string) *fixtures.User { return s.users[strings.ToLower(name)] }

// caller is who makes a request.
type caller struct {
	user   *fixtures.User // never nil; the anonymous user for callers without valid credentials
	sent   string         // the kind of credentials that the request carries, valid or not; "" when none
	scheme string         // how the caller authenticated; "" when anonymous
	scopes []string       // roles that a bearer token is limited to; nil: all that the user has
}

// name is the caller's account, "" for the anonymous one.
func (c caller) name() string {
	if c.scheme == "" {
		return ""
	}
	return c.user.Name
}

// holds reports whether the caller holds a permission: by the account, within the token's scopes.
func (s *snapshot) holds(c caller, permission string) bool {
	if !s.site.Holds(c.user, permission) {
		return false
	}
	return c.scopes == nil || slices.ContainsFunc(c.scopes, func(role string) bool { return s.roleHolds(role, permission) })
}

func (s *snapshot) roleHolds(role, permission string) bool {
	i := slices.IndexFunc(s.site.Roles, func(r fixtures.Role) bool { return r.ID == role })
	return i >= 0 && slices.Contains(s.site.Roles[i].Permissions, permission)
}

// lacks returns the first permission that the caller lacks for the method, "" when none.
func (s *snapshot) lacks(c caller, m *method) string {
	for _, p := range m.Access {
		if !s.holds(c, p) {
			return p
		}
	}
	return ""
}

// visible returns, for every class of methods, whether the caller may run them, as a string of 0 and 1: two callers
// with the same string see the same methods.
func (s *snapshot) visible(c caller) string {
	key := make([]byte, len(s.classes))
	for i, needs := range s.classes {
		key[i] = '1'
		if slices.ContainsFunc(needs, func(p string) bool { return !s.holds(c, p) }) {
			key[i] = '0'
		}
	}
	return string(key)
}
