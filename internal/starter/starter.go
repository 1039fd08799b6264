// Package starter holds a small conformant bridge in each of several languages, with its tests, its bridgecheck.yaml and its
// CI file, and writes one of them into a directory. A directory here is a starter, named after its language; its files are
// written as they are, so that what is tested is what people get. It runs nothing: test/bridges tests the starters.
package starter

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed all:node all:python all:go all:php
var files embed.FS

// A Starter is a bridge to start from.
type Starter struct {
	Language string
	Test     string // the command, in its directory, that runs its own tests
}

// All lists the starters.
func All() []Starter {
	return []Starter{
		{Language: "node", Test: "node --test"},
		{Language: "python", Test: "python3 -m unittest"},
		{Language: "go", Test: "go test ./..."},
		{Language: "php", Test: "php test.php"},
	}
}

// Languages are the languages of the starters.
func Languages() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Language)
	}
	return names
}

// Find returns the starter of a language.
func Find(language string) (Starter, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Starter) bool { return s.Language == language })
	if i < 0 {
		return Starter{}, false
	}
	return all[i], true
}

// Config is the file, in the directory of any starter, that says what its bridge claims.
const Config = "bridgecheck.yaml"

// Run is the command, in the directory of any starter, that tests it against the contract.
const Run = "bridgecheck run --config " + Config

// ExistsError says that a file is in the way.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string { return e.Name + " exists already, and is not overwritten" }

// Write writes the starter into a directory, which it creates if necessary, and returns the names of the files. Where one of
// them exists already, or cannot be written, it leaves the directory as it was.
func (s Starter) Write(dir string) ([]string, error) {
	contents := map[string][]byte{}
	var names []string
	err := fs.WalkDir(files, s.Language, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		target := s.target(name)
		names = append(names, target)
		contents[target], err = files.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(target); err == nil {
			return nil, &ExistsError{target}
		}
	}
	var created []string
	for _, name := range names {
		if err := create(filepath.Join(dir, filepath.FromSlash(name)), contents[name], &created); err != nil {
			for _, name := range slices.Backward(created) {
				err = errors.Join(err, os.Remove(name))
			}
			return nil, err
		}
	}
	return names, nil
}

// target is the name under which an embedded file is written. A directory with a go.mod cannot be embedded.
func (s Starter) target(name string) string {
	name = strings.TrimPrefix(name, s.Language+"/")
	if path.Base(name) == "go.mod.txt" {
		return strings.TrimSuffix(name, ".txt")
	}
	return name
}

// create writes a new file, and the directories above it that are missing; it adds what it made to created.
func create(name string, data []byte, created *[]string) error {
	var missing []string
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if err := os.Mkdir(dir, 0o777); err != nil {
			return err
		}
		*created = append(*created, dir)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	*created = append(*created, name)
	if _, err := f.Write(data); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), f.Close())
	}
	return f.Close()
}
