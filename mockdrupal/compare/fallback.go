package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// recordedSite is fixtures.json: a recorded site's methods as data.
type recordedSite struct {
	Content fixtures.Content `json:"content"`
	Methods []struct {
		ID     string   `json:"id"`
		Usage  string   `json:"usage"`
		Access []string `json:"access"`
		Params *[]struct {
			Name        any          `json:"name"` // an integer by position
			Schema      fixtures.Raw `json:"schema"`
			Factory     *string      `json:"factory"`
			Description *string      `json:"description"`
			Required    bool         `json:"required"`
		} `json:"params"`
		Output  fixtures.Raw      `json:"outputSchema"`
		Headers map[string]string `json:"responseHeaders"`
		MCP     *struct {
			Title       *string      `json:"title"`
			Annotations fixtures.Raw `json:"annotations"`
		} `json:"mcp"`
		Behaviour string `json:"behaviour"` // in words: `returns "text"`, `returns 42`, …
		Module    string `json:"module"`
	} `json:"methods"`
}

// recordedUser is an entry of users.json.
type recordedUser struct {
	UID         int                 `json:"uid"`
	Name        string              `json:"name"`
	Password    *string             `json:"password"`
	Active      bool                `json:"active"`
	Roles       []string            `json:"roles"`
	Permissions map[string][]string `json:"permissions_by_role"`
}

// siteOf returns the site that recordings were made of, where the options name none: the built-in one when its methods are
// those of fixtures.json or there is no such file; otherwise what fixtures.json and users.json say, where a method
// whose behaviour words do not name a value returns its arguments.
func siteOf(dir string) (*fixtures.Site, error) {
	builtin, err := fixtures.Builtin("transcripts")
	if err != nil {
		return nil, err
	}
	var methods recordedSite
	if err := readJSON(filepath.Join(dir, "fixtures.json"), &methods); errors.Is(err, os.ErrNotExist) {
		return builtin, nil
	} else if err != nil {
		return nil, err
	}
	known := 0
	for _, m := range methods.Methods {
		if _, ok := builtin.Method(m.ID); ok {
			known++
		}
	}
	if known == len(builtin.Methods) || known*4 > len(methods.Methods) {
		return builtin, nil
	}
	var users []recordedUser
	if err := readJSON(filepath.Join(dir, "users.json"), &users); err != nil {
		return nil, err
	}
	return assemble(methods, users), nil
}

func readJSON(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the recorded site: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading the recorded site: %s: %w", file, err)
	}
	return nil
}

func assemble(recorded recordedSite, users []recordedUser) *fixtures.Site {
	site := &fixtures.Site{Name: "recorded", Title: "Drupal", Content: recorded.Content, NullFails: true,
		Auth: fixtures.Auth{JSONRPC: []string{"basic"}, MCP: []string{"cookie"}}}
	seen := map[string]bool{}
	for _, u := range users {
		for role, permissions := range u.Permissions {
			if !seen[role] {
				seen[role] = true
				site.Roles = append(site.Roles, fixtures.Role{ID: role, Permissions: permissions})
			}
		}
		if u.UID > 0 {
			site.Users = append(site.Users, fixtures.User{UID: u.UID, Name: u.Name, Password: text(u.Password), Roles: u.Roles, Blocked: !u.Active})
		}
	}
	for _, m := range recorded.Methods {
		method := fixtures.Method{ID: m.ID, Usage: m.Usage, Access: m.Access, NullParams: m.Params == nil, Unchecked: true,
			Output: present(m.Output), ResponseHeaders: m.Headers, Module: m.Module, Behaviour: behaviourOf(m.Behaviour)}
		if m.Params != nil {
			for _, p := range *m.Params {
				name, named := p.Name.(string)
				if n, ok := p.Name.(float64); !named && ok {
					name, method.ByPosition = strconv.Itoa(int(n)), true
				}
				method.Params = append(method.Params, fixtures.Param{Name: name, Schema: present(p.Schema), Factory: text(p.Factory),
					Description: text(p.Description), Required: p.Required})
			}
		}
		if m.MCP != nil {
			method.MCP = &fixtures.Tool{Title: text(m.MCP.Title), Annotations: present(m.MCP.Annotations)}
		}
		site.Methods = append(site.Methods, method)
	}
	return site
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func present(r fixtures.Raw) fixtures.Raw {
	if string(r) == "null" {
		return nil
	}
	return r
}

// behaviourOf understands `returns VALUE`, where VALUE begins with a JSON document.
func behaviourOf(words string) fixtures.Behaviour {
	value, ok := strings.CutPrefix(words, "returns ")
	if !ok {
		return fixtures.Behaviour{Kind: fixtures.Echo}
	}
	var doc fixtures.Raw
	if err := json.NewDecoder(strings.NewReader(value)).Decode(&doc); err != nil {
		return fixtures.Behaviour{Kind: fixtures.Echo}
	}
	return fixtures.Behaviour{Kind: fixtures.Value, Value: doc}
}
