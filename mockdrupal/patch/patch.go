// Package patch changes parts of a site as one step: methods are disabled and come back in their old place, schemas, roles
// and accounts change. It is data that the control plane takes as JSON; it serves no site.
//
// Its invariant: a patch is applied as a whole or not at all, and what it yields is a valid site.
package patch

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
)

// Patch is a change of the site, made as a whole or not at all. A zero field changes nothing.
type Patch struct {
	Disable    Selection         `json:"disable,omitzero"` // methods to take away; they can be enabled again
	Enable     Selection         `json:"enable,omitzero"`  // methods to bring back, in their old place
	Methods    map[string]Method `json:"methods,omitempty"`
	Roles      map[string]Role   `json:"roles,omitempty"`
	Users      map[string]User   `json:"users,omitempty"`
	Extensions *bool             `json:"extensions,omitempty"`
}

// Selection selects methods by path.Match patterns of their ids, or by their modules' names.
type Selection struct {
	Methods []string `json:"methods,omitempty"`
	Modules []string `json:"modules,omitempty"`
}

func (s Selection) selects(m fixtures.Method) bool {
	return slices.Contains(s.Modules, m.Module) || slices.ContainsFunc(s.Methods, func(p string) bool { return journal.Matches(p, m.ID) })
}

// Method changes a method. A nil field changes nothing.
type Method struct {
	Usage   *string                 `json:"usage,omitempty"`
	Access  *[]string               `json:"access,omitempty"`
	Schemas map[string]fixtures.Raw `json:"schemas,omitempty"` // JSON Schemas, by parameter
	Output  fixtures.Raw            `json:"output,omitempty"`
	Title   *string                 `json:"title,omitempty"` // of the McpTool attribute, which the method then has
	Exposed *bool                   `json:"exposed,omitempty"`
}

// Role grants a role permissions and revokes them.
type Role struct {
	Grant  []string `json:"grant,omitempty"`
	Revoke []string `json:"revoke,omitempty"`
}

// User changes an account. A nil field changes nothing.
type User struct {
	Password *string   `json:"password,omitempty"`
	Roles    *[]string `json:"roles,omitempty"`
	Blocked  *bool     `json:"blocked,omitempty"`
}

// Apply returns a changed clone of the site and the methods that are disabled on it. It fails when the patch names what
// the site does not have or would make it invalid.
func (p Patch) Apply(site *fixtures.Site, parked Parking) (*fixtures.Site, Parking, error) {
	site, parked = site.Clone(), parked.clone()
	if err := p.apply(site, &parked); err != nil {
		return nil, Parking{}, err
	}
	if err := p.validate(site); err != nil {
		return nil, Parking{}, err
	}
	return site, parked, nil
}

// validate reads what the patch changed as a site file, as strictly as any: schemas, permissions and roles must be
// right. The other methods stand as they were.
func (p Patch) validate(site *fixtures.Site) error {
	changed := *site
	changed.Methods = slices.DeleteFunc(slices.Clone(site.Methods), func(m fixtures.Method) bool { _, touched := p.Methods[m.ID]; return !touched })
	text, err := changed.YAML()
	if err != nil {
		return err
	}
	_, err = fixtures.Parse("the patched site", text)
	return err
}

// Parking holds the methods that were disabled, and the order in which the site had them. The zero value holds none.
type Parking struct {
	methods map[string]fixtures.Method
	order   map[string]int
}

func (p Parking) clone() Parking {
	if p.methods == nil {
		return Parking{methods: map[string]fixtures.Method{}}
	}
	return Parking{methods: maps.Clone(p.methods), order: p.order}
}

func (p Patch) apply(site *fixtures.Site, park *Parking) error {
	if err := park.disable(site, p.Disable); err != nil {
		return err
	}
	if err := park.enable(site, p.Enable); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(p.Methods)) {
		m, ok := site.Method(id)
		if !ok {
			return fmt.Errorf("methods: the site has no method %q", id)
		}
		if err := p.Methods[id].apply(m); err != nil {
			return fmt.Errorf("methods.%s: %w", id, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.Roles)) {
		i := slices.IndexFunc(site.Roles, func(r fixtures.Role) bool { return r.ID == id })
		if i < 0 && id != fixtures.AnonymousRole && id != fixtures.AuthenticatedRole {
			return fmt.Errorf("roles: the site has no role %q", id)
		}
		if i < 0 {
			site.Roles = append(site.Roles, fixtures.Role{ID: id})
			i = len(site.Roles) - 1
		}
		p.Roles[id].apply(&site.Roles[i])
	}
	for _, name := range slices.Sorted(maps.Keys(p.Users)) {
		i := slices.IndexFunc(site.Users, func(u fixtures.User) bool { return u.Name == name })
		if i < 0 {
			return fmt.Errorf("users: the site has no account %q", name)
		}
		if err := p.Users[name].apply(&site.Users[i], site); err != nil {
			return fmt.Errorf("users.%s: %w", name, err)
		}
	}
	if p.Extensions != nil {
		site.Extensions = *p.Extensions
	}
	return nil
}

func (p *Parking) disable(site *fixtures.Site, s Selection) error {
	if err := s.Check(site.Methods, "disable", "is on the site"); err != nil {
		return err
	}
	if len(p.methods) == 0 {
		p.order = make(map[string]int, len(site.Methods))
		for i, m := range site.Methods {
			p.order[m.ID] = i
		}
	}
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool {
		if !s.selects(m) {
			return false
		}
		p.methods[m.ID] = m
		return true
	})
	return nil
}

func (p *Parking) enable(site *fixtures.Site, s Selection) error {
	if err := s.Check(slices.Collect(maps.Values(p.methods)), "enable", "was disabled"); err != nil {
		return err
	}
	for id, m := range p.methods {
		if s.selects(m) {
			delete(p.methods, id)
			site.Methods = append(site.Methods, m)
		}
	}
	slices.SortStableFunc(site.Methods, func(a, b fixtures.Method) int { return p.place(a) - p.place(b) })
	return nil
}

// place is where a method stood; one that came later stands behind all.
func (p *Parking) place(m fixtures.Method) int {
	if i, known := p.order[m.ID]; known {
		return i
	}
	return len(p.order)
}

// Check fails when a pattern or a module selects nothing; what and where describe the selection in the error.
func (s Selection) Check(methods []fixtures.Method, what, where string) error {
	for _, pattern := range s.Methods {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%s.methods: %q is no pattern", what, pattern)
		}
		if !slices.ContainsFunc(methods, func(m fixtures.Method) bool { return journal.Matches(pattern, m.ID) }) {
			return fmt.Errorf("%s.methods: no method that %s matches %q", what, where, pattern)
		}
	}
	for _, module := range s.Modules {
		if module == "" || !slices.ContainsFunc(methods, func(m fixtures.Method) bool { return m.Module == module }) {
			return fmt.Errorf("%s.modules: no method that %s belongs to the module %q", what, where, module)
		}
	}
	return nil
}

func (p Method) apply(m *fixtures.Method) error {
	if p.Usage != nil {
		m.Usage = *p.Usage
	}
	if p.Access != nil {
		m.Access = *p.Access
	}
	for _, name := range slices.Sorted(maps.Keys(p.Schemas)) {
		i := slices.IndexFunc(m.Params, func(have fixtures.Param) bool { return have.Name == name })
		if i < 0 {
			return fmt.Errorf("schemas: the method has no parameter %q", name)
		}
		m.Params[i].Schema, m.Params[i].Factory, m.Params[i].Drupal = p.Schemas[name], "", nil
	}
	if p.Output != nil {
		m.Output = p.Output
	}
	if p.Exposed != nil && !*p.Exposed {
		m.MCP = nil
		return nil
	}
	if m.MCP == nil && (p.Exposed != nil || p.Title != nil) {
		m.MCP = &fixtures.Tool{}
	}
	if p.Title != nil {
		m.MCP.Title = *p.Title
	}
	return nil
}

func (p Role) apply(r *fixtures.Role) {
	for _, permission := range p.Grant {
		if !slices.Contains(r.Permissions, permission) {
			r.Permissions = append(r.Permissions, permission)
		}
	}
	r.Permissions = slices.DeleteFunc(r.Permissions, func(have string) bool { return slices.Contains(p.Revoke, have) })
}

func (p User) apply(u *fixtures.User, site *fixtures.Site) error {
	if p.Password != nil {
		u.Password = *p.Password
	}
	if p.Roles != nil {
		for _, id := range *p.Roles {
			if !slices.ContainsFunc(site.Roles, func(r fixtures.Role) bool { return r.ID == id }) {
				return fmt.Errorf("roles: the site has no role %q", id)
			}
		}
		u.Roles = *p.Roles
	}
	if p.Blocked != nil {
		u.Blocked = *p.Blocked
	}
	return nil
}
