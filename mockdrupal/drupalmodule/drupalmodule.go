// Package drupalmodule writes a site file out as a Drupal module: installed on a real Drupal, the module offers the site's
// methods with the site's behaviours, accounts and permissions, so that the real site can be tested as the mock is. It runs
// no Drupal and no PHP.
//
// Its invariant: everything that depends on the site file is data, in two files of JSON and in the attributes (or
// annotations) of one class for each method; the code that does something lies below module/, is the same for every site,
// and is tested against the mock response by response.
package drupalmodule

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Name is the machine name of the module.
const Name = "bridgecheck_fixtures"

// The data of a site holds passwords and lies below the web root. It is JSON, which is YAML: by Drupal's rules a web server
// serves no file of that name.
const (
	siteData     = Name + ".data.yml"
	siteFileData = Name + ".site-file.yml"
)

// Options say which Drupal modules the module is for.
type Options struct {
	JSONRPC int // the jsonrpc module's line: 3 with attributes, 2 with annotations
}

//go:embed all:module
var static embed.FS

// Files returns the module's files, by their paths in it. It fails when a method cannot be written in PHP.
func Files(site *fixtures.Site, o Options) (map[string][]byte, error) {
	if o.JSONRPC != 2 && o.JSONRPC != 3 {
		return nil, fmt.Errorf("the jsonrpc module has no line %d that is known here; give 2 or 3", o.JSONRPC)
	}
	if o.JSONRPC == 2 {
		site = site.Clone()
		site.NullFails = true
	}
	files := map[string][]byte{}
	err := fs.WalkDir(static, "module", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[strings.TrimPrefix(name, "module/")], err = static.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the module's files: %w", err)
	}
	files[Name+".info.yml"] = []byte(info)
	if files["composer.json"], err = writeJSON(composer(o)); err != nil {
		return nil, err
	}
	if files[siteData], err = siteJSON(site); err != nil {
		return nil, err
	}
	file, err := site.JSON()
	if err != nil {
		return nil, err
	}
	files[siteFileData] = append(file, '\n')
	for i := range site.Methods {
		class := className(i, site.Methods[i].ID)
		source, err := methodClass(class, &site.Methods[i], o)
		if err != nil {
			return nil, fmt.Errorf("the method %q cannot be written in PHP: %w", site.Methods[i].ID, err)
		}
		files["src/Plugin/"+Name+"/Method/"+class+".php"] = source
	}
	return files, nil
}

// Write writes the module into a directory, which must be empty or new.
func Write(dir string, site *fixtures.Site, o Options) error {
	files, err := Files(site, o)
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("the directory %s is not empty: a module that stands there would be mixed with this one", dir)
	}
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing the module: %w", err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("writing the module: %w", err)
		}
	}
	return nil
}

// cores are the versions of Drupal core that the module runs on.
const cores = "^10.6 || ^11 || ^12"

const info = `name: bridgecheck fixtures
type: module
description: 'Methods, accounts and permissions of a bridgecheck site file. For test sites only.'
package: Testing
core_version_requirement: ` + cores + `
php: 8.2
dependencies:
  - drupal:basic_auth
  - drupal:user
  - jsonrpc:jsonrpc
  - jsonrpc:jsonrpc_discovery
`

func composer(o Options) any {
	return map[string]any{
		"name":        "bridgecheck/" + Name,
		"description": "Methods, accounts and permissions of a bridgecheck site file. For test sites only.",
		"type":        "drupal-module",
		"license":     "GPL-2.0-or-later",
		"require":     map[string]string{"php": ">=8.2", "drupal/core": cores, "drupal/jsonrpc": fmt.Sprintf("^%d", o.JSONRPC)},
	}
}

func writeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// className is the class of the i-th method. The number keeps the site's order, and ids apart that differ in what no class
// name can have.
func className(i int, id string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%04d", i+1)
	start := true
	for _, r := range id {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		switch {
		case !letter:
			start = true
		case start && r >= 'a' && r <= 'z':
			b.WriteRune(r - 'a' + 'A')
			start = false
		default:
			b.WriteRune(r)
			start = false
		}
		if b.Len() >= maxClassName {
			break
		}
	}
	return b.String()
}

const maxClassName = 60

// permissions are those that methods and roles name, sorted.
func permissions(site *fixtures.Site) []string {
	all := slices.Clone(site.Permissions)
	for _, r := range site.Roles {
		all = append(all, r.Permissions...)
	}
	for _, m := range site.Methods {
		all = append(all, m.Access...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
