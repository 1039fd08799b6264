package compare

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
)

// variant says how the site was set up when an area was recorded: what its file says where that was not as for the
// others, and what its records show.
type variant struct {
	Module    string            `json:"-"`         // version of the module that was installed; "": none
	Bearer    bool              `json:"-"`         // OAuth was installed
	Add       string            `json:"add"`       // a site file in variants/ whose methods, roles, accounts and auth were there too
	Flood     bool              `json:"flood"`     // flood control is part of what was recorded
	Anonymous []string          `json:"anonymous"` // permissions of the anonymous role
	Steps     map[string]string `json:"steps"`     // by the beginning of a record's name: the file to add instead, "" for none
}

//go:embed variants
var variantFiles embed.FS

func loadVariants() (map[string]variant, error) {
	data, err := variantFiles.ReadFile("variants/areas.json")
	if err != nil {
		return nil, err
	}
	var v map[string]variant
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("variants/areas.json: %w", err)
	}
	return v, nil
}

// Where the module's addresses are, and which of them are no tool's own address.
const (
	moduleRoutes = "/mcp/tools/"
	oauthFile    = "oauth"
)

var moduleAddresses = []string{"list", "describe", "invoke"}

// read adds to a variant what an area's records show: requests to the module, a response from a tool's own address, which
// v1.4 brought, and bearer tokens that the site knows.
func (v variant) read(area Area) variant {
	for _, r := range area.Records {
		if scheme, _, _ := strings.Cut(r.Auth, ":"); scheme == "bearer" {
			v.Bearer = true
		}
		path, _, _ := strings.Cut(r.Request.Path, "?")
		address, ok := strings.CutPrefix(strings.ToLower(path), moduleRoutes)
		switch {
		case !ok || v.Module == module.V14:
		case slices.Contains(moduleAddresses, strings.Trim(address, "/")) || r.Response.HTMLTitle != "":
			v.Module = module.V13
		default:
			v.Module = module.V14
		}
	}
	if v.Bearer && v.Add == "" {
		v.Add = oauthFile
	}
	return v
}

// firstOfTheRest is the method before which the site served what its further modules brought.
const firstOfTheRest = "examples.articles.list"

// addition returns the file that a record's site had beside the base.
func (v variant) addition(record string) string {
	_, name, _ := strings.Cut(record, "/")
	for prefix, file := range v.Steps {
		if strings.HasPrefix(name, prefix) {
			return file
		}
	}
	return v.Add
}

// site returns the base as the variant had it.
func (v variant) site(base *fixtures.Site, add string) (*fixtures.Site, error) {
	site := base.Clone()
	for i := range site.Roles {
		if site.Roles[i].ID == fixtures.AnonymousRole {
			site.Roles[i].Permissions = append(site.Roles[i].Permissions, v.Anonymous...)
		}
	}
	if add == "" {
		return site, nil
	}
	data, err := variantFiles.ReadFile("variants/" + add + ".yaml")
	if err != nil {
		return nil, err
	}
	more, err := fixtures.Parse(add, data)
	if err != nil {
		return nil, fmt.Errorf("variants/%s.yaml: %w", add, err)
	}
	merge(site, more)
	if v.Bearer {
		site.Auth = more.Auth
	}
	return site, nil
}

// merge adds roles, permissions, tokens and methods of one site to another.
func merge(site, more *fixtures.Site) {
	for _, r := range more.Roles {
		if i := slices.IndexFunc(site.Roles, func(have fixtures.Role) bool { return have.ID == r.ID }); i >= 0 {
			site.Roles[i].Permissions = append(site.Roles[i].Permissions, r.Permissions...)
		} else {
			site.Roles = append(site.Roles, r)
		}
	}
	for _, u := range more.Users {
		if i := slices.IndexFunc(site.Users, func(have fixtures.User) bool { return have.Name == u.Name }); i >= 0 {
			site.Users[i].Tokens = append(site.Users[i].Tokens, u.Tokens...)
		}
	}
	at := slices.IndexFunc(site.Methods, func(m fixtures.Method) bool { return m.ID == firstOfTheRest })
	if at < 0 {
		at = len(site.Methods)
	}
	site.Methods = slices.Insert(site.Methods, at, more.Methods...)
}

// options are those of a mock for the variant.
func (v variant) options(quirks []string) (mockdrupal.Options, error) {
	o := mockdrupal.Options{Quirks: quirks, JournalLimit: 1, Flood: v.Flood}
	if v.Module == "" {
		return o, nil
	}
	extension, err := module.New(v.Module)
	o.Extensions = []mockdrupal.Extension{extension}
	return o, err
}
