// Command module moves this module to another path: `go run ./internal/tools/module example.org/you/bridgecheck` in the
// root of the repository. It replaces the path in every text file, as import, in go.mod and in the documentation, and
// formats the Go files again, because imports are sorted by their path.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "module:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: module PATH")
	}
	if err := checkPath(args[0]); err != nil {
		return err
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	declared := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(mod)
	if declared == nil {
		return errors.New("go.mod declares no module")
	}
	changed, err := move(".", string(declared[1]), args[0])
	if err != nil {
		return err
	}
	fmt.Printf("%s is now %s, in %d files\n", declared[1], args[0], changed)
	return nil
}

// checkPath refuses what the go command would not take for a path of a module that others can fetch.
func checkPath(path string) error {
	first, _, _ := strings.Cut(path, "/")
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`).MatchString(path) || !strings.Contains(first, ".") {
		return fmt.Errorf("%q is no path of a module: give for example example.org/you/bridgecheck", path)
	}
	return nil
}

// move replaces the path in all text files below root and returns in how many it stood.
func move(root, from, to string) (changed int, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules" || entry.Name() == "bin" || entry.Name() == "dist"):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after := replaced(before, from, to)
		if bytes.IndexByte(before, 0) >= 0 || bytes.Equal(before, after) {
			return nil
		}
		if filepath.Ext(path) == ".go" {
			if after, err = format.Source(after); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		changed++
		return os.WriteFile(path, after, info.Mode().Perm())
	})
	return changed, err
}

// longer matches what makes another path of a path that it follows: a letter, or a dot before one.
var longer = regexp.MustCompile(`^\.?[A-Za-z0-9_~-]`)

// replaced is the text with the path to in place of the path from, also where packages of it are named.
func replaced(text []byte, from, to string) []byte {
	var out []byte
	for {
		before, after, ok := bytes.Cut(text, []byte(from))
		out = append(out, before...)
		switch {
		case !ok:
			return out
		case longer.Match(after):
			out = append(out, from...)
		default:
			out = append(out, to...)
		}
		text = after
	}
}
