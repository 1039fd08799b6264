package drupalmodule

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// phpSiteData is what the module's PHP reads of the site.
type phpSiteData struct {
	Title       string                    `json:"title"`
	Extensions  bool                      `json:"extensions"`
	Permissions []string                  `json:"permissions"`
	Roles       members[[]string]         `json:"roles"`
	Users       []userData                `json:"users"`
	Content     map[string][]fixtures.Raw `json:"content"`
	Methods     []methodData              `json:"methods"`
}

type userData struct {
	UID      int      `json:"uid"`
	Name     string   `json:"name"`
	Password string   `json:"password"`
	Roles    []string `json:"roles"`
	Blocked  bool     `json:"blocked"`
}

type methodData struct {
	ID        string        `json:"id"`
	Module    string        `json:"module,omitempty"`
	Params    []string      `json:"params"`
	MCPTool   string        `json:"mcpTool,omitempty"` // the JSON that the site shows, as text
	Behaviour behaviourData `json:"behaviour"`
}

// behaviourData is a behaviour with its JSON values as texts: they are sent as they are.
type behaviourData struct {
	Kind   fixtures.Kind `json:"kind"`
	Sleep  int64         `json:"sleep,omitempty"` // milliseconds
	Value  *string       `json:"value,omitempty"`
	Error  *errorData    `json:"error,omitempty"`
	Text   string        `json:"text,omitempty"`
	Class  string        `json:"class,omitempty"`
	List   string        `json:"list,omitempty"`
	Match  string        `json:"match,omitempty"`
	By     string        `json:"by,omitempty"`
	Page   string        `json:"page,omitempty"`
	Fields []string      `json:"fields,omitempty"`
	Field  string        `json:"field,omitempty"`
	Method string        `json:"method,omitempty"`
}

type errorData struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Data    *string `json:"data,omitempty"`
}

func siteJSON(site *fixtures.Site) ([]byte, error) {
	d := phpSiteData{Title: site.Title, Extensions: site.Extensions, Permissions: permissions(site), Users: []userData{},
		Content: map[string][]fixtures.Raw(site.Content), Methods: []methodData{}}
	for _, r := range site.Roles {
		d.Roles = append(d.Roles, member[[]string]{r.ID, orEmpty(r.Permissions)})
	}
	for _, u := range site.Users {
		d.Users = append(d.Users, userData{u.UID, u.Name, u.Password, orEmpty(u.Roles), u.Blocked})
	}
	for i := range site.Methods {
		m, err := methodOf(&site.Methods[i])
		if err != nil {
			return nil, fmt.Errorf("the method %q: %w", site.Methods[i].ID, err)
		}
		d.Methods = append(d.Methods, m)
	}
	return writeJSON(d)
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func methodOf(m *fixtures.Method) (methodData, error) {
	d := methodData{ID: m.ID, Module: m.Module, Params: []string{}}
	for _, p := range m.Params {
		d.Params = append(d.Params, p.Name)
	}
	b := m.Behaviour
	d.Behaviour = behaviourData{Kind: b.Kind, Sleep: b.Sleep.Milliseconds(), Text: b.Text, Class: b.Class, List: b.List, Match: b.Match,
		By: b.By, Page: b.Page, Fields: b.Fields, Field: b.Field, Method: b.Method}
	var err error
	if d.Behaviour.Value, err = sent(b.Value); err != nil {
		return d, err
	}
	if b.Kind == fixtures.Value && d.Behaviour.Value == nil {
		null := "null"
		d.Behaviour.Value = &null
	}
	if b.Error != nil {
		data, err := sent(b.Error.Data)
		if err != nil {
			return d, err
		}
		d.Behaviour.Error = &errorData{b.Error.Code, b.Error.Message, data}
	}
	if m.MCP != nil {
		if d.MCPTool, err = toolAttribute(m.MCP); err != nil {
			return d, err
		}
	}
	return d, nil
}

// sent is a JSON value as the site sends it: without blanks, strings escaped as PHP does.
func sent(raw fixtures.Raw) (*string, error) {
	if raw == nil {
		return nil, nil
	}
	b, err := php.Encode(php.Literal(raw))
	text := string(b)
	return &text, err
}

// toolAttribute is what the site shows of the McpTool attribute.
func toolAttribute(tool *fixtures.Tool) (string, error) {
	shown := php.Object{Array: &php.Array{}}
	if tool.Title != "" {
		shown.Set(php.KeyOf("title"), tool.Title)
	}
	if tool.Annotations != nil {
		shown.Set(php.KeyOf("annotations"), php.Literal(tool.Annotations))
	}
	b, err := php.Encode(shown)
	return string(b), err
}

// members is a JSON object whose members keep their order.
type members[T any] []member[T]

type member[T any] struct {
	name  string
	value T
}

func (m members[T]) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, each := range m {
		name, err := json.Marshal(each.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(each.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
