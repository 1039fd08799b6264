// Command notices prints the licences of everything that the binary links, as THIRD_PARTY_NOTICES has them: `go run
// ./internal/tools/notices >THIRD_PARTY_NOTICES` in the root of the repository. It reads the module cache.
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	text, err := notices(".")
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// systems are those for which the binary is released; each links other modules.
var systems = []string{"linux", "darwin", "windows"}

// module is a module that is linked, with the folders of its packages that are.
type module struct {
	name, dir string
	folders   map[string]bool
}

// notices is the text for the repository at root.
func notices(root string) ([]byte, error) {
	modules, err := linked(root)
	if err != nil {
		return nil, err
	}
	goroot, err := output(root, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	goroot = strings.TrimSpace(goroot)
	modules["the Go standard library"] = &module{name: "the Go standard library", dir: goroot, folders: map[string]bool{goroot: true}}
	var text bytes.Buffer
	text.WriteString("bridgecheck contains the following software, each under its own licence. `make notices` writes this file.\n")
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		m := modules[key]
		files, err := m.licences()
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read the licence of %s: %w", m.name, err)
			}
			name, err := filepath.Rel(m.dir, file)
			if err != nil {
				return nil, err
			}
			data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
			fmt.Fprintf(&text, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), m.name, filepath.ToSlash(name), bytes.TrimSpace(data))
		}
	}
	return text.Bytes(), nil
}

// linked lists the modules that the binary links on any of the systems, by name and version.
func linked(root string) (map[string]*module, error) {
	modules := map[string]*module{}
	for _, system := range systems {
		list, err := output(root, []string{"GOOS=" + system, "GOARCH=amd64", "CGO_ENABLED=0"}, "go", "list", "-deps",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/bridgecheck")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(list) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(fields) != 3 {
				continue // of the standard library, or ours
			}
			m := modules[fields[0]]
			if m == nil {
				m = &module{name: fields[0], dir: fields[1], folders: map[string]bool{}}
				modules[fields[0]] = m
			}
			for folder := fields[2]; strings.HasPrefix(folder, m.dir); folder = filepath.Dir(folder) {
				m.folders[folder] = true
			}
		}
	}
	return modules, nil
}

// licence matches the names of files that state terms.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense|patents)([.-].*)?$`)

// licences lists the files with the terms of the module, and those of its linked packages that have their own.
func (m *module) licences() ([]string, error) {
	var files []string
	for _, folder := range slices.Sorted(maps.Keys(m.folders)) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("look for the licence of %s: %w", m.name, err)
		}
		for _, entry := range entries {
			if licence.MatchString(entry.Name()) && !entry.IsDir() && filepath.Ext(entry.Name()) != ".go" {
				files = append(files, filepath.Join(folder, entry.Name()))
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no licence in %s", m.name, m.dir)
	}
	return files, nil
}

func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, errs.String())
	}
	return string(out), nil
}
