// Command weigh prints what each module costs the program: packages, source to compile, and bytes in the binary, the heaviest first.
// Its argument is the binary, built with its symbols.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := weigh(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "weigh: %v\n", err)
		os.Exit(1)
	}
}

// module is what the program has of one.
type module struct {
	path, version    string
	packages         int
	source, inBinary int64 // bytes
}

const (
	standard   = "Go's standard library"
	unassigned = "none: line tables, types, symbols"
)

func weigh(args []string) error {
	if len(args) != 1 {
		return errors.New("give the binary, for example bin/bridgecheck")
	}
	modules, of, err := listed()
	if err != nil {
		return err
	}
	sizes, err := symbols(args[0])
	if err != nil {
		return err
	}
	file, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	rest := &module{path: unassigned, inBinary: file.Size()}
	modules[unassigned] = rest
	for pkg, size := range sizes {
		if path, known := of[pkg]; known {
			modules[path].inBinary += size
			rest.inBinary -= size
		}
	}
	fmt.Print("# What dependencies cost\n\n",
		"`make weigh-dependencies` writes this page: what each module adds to the program. The source is what a first build\n",
		"compiles, which takes time about in proportion, but for generated code, which takes more. What a module has in the binary is\n",
		"its functions and data; a release has no symbols.\n\n",
		"| module | version | packages | source, KiB | binary, KiB |\n|---|---|---|---|---|\n")
	for _, m := range slices.SortedFunc(maps.Values(modules), func(a, b *module) int {
		return cmp.Or(cmp.Compare(b.inBinary, a.inBinary), cmp.Compare(b.source, a.source), strings.Compare(a.path, b.path))
	}) {
		fmt.Printf("| %s | %s | %d | %d | %d |\n", m.path, m.version, m.packages, m.source>>10, m.inBinary>>10)
	}
	return nil
}

// listed are the modules that the program is compiled from, and the module of each package.
func listed() (map[string]*module, map[string]string, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Dir,GoFiles,SFiles,Module", "./cmd/bridgecheck")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	modules, of := map[string]*module{}, map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Name, Dir string
			GoFiles, SFiles       []string
			Module                *struct{ Path, Version string }
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return modules, of, nil
		} else if err != nil {
			return nil, nil, err
		}
		path, version := standard, ""
		if p.Module != nil {
			path, version = p.Module.Path, p.Module.Version
		}
		m := modules[path]
		if m == nil {
			m = &module{path: path, version: version}
			modules[path] = m
		}
		m.packages++
		of[p.ImportPath] = path
		if p.Name == "main" {
			of["main"] = path
		}
		for _, name := range slices.Concat(p.GoFiles, p.SFiles) {
			info, err := os.Stat(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, nil, err
			}
			m.source += info.Size()
		}
	}
}

// symbols are the bytes of functions and data in a binary, by package.
func symbols(binary string) (map[string]int64, error) {
	cmd := exec.Command("go", "tool", "nm", "-size", binary)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool nm: %w", err)
	}
	sizes := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // address, size, kind, name
		if len(fields) < 4 || !strings.ContainsAny(fields[2], "TtRrDd") || fields[3] == "crypto/internal/fips140/drbg.memory" {
			continue // what is zero at the start is not in the file; nm takes that symbol for data
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		sizes[packageOf(fields[3])] += size
	}
	return sizes, nil
}

// packageOf is the package that a symbol belongs to; "" where it belongs to none.
func packageOf(symbol string) string {
	name, _, _ := strings.Cut(symbol, "[") // of a generic function: its types have packages, too
	if strings.HasPrefix(name, "runtime.pclntab") || strings.Contains(name, ":") {
		return ""
	}
	slash := strings.LastIndexByte(name, '/') + 1
	if dot := strings.IndexByte(name[slash:], '.'); dot >= 0 {
		return strings.ReplaceAll(name[:slash+dot], "%2e", ".")
	}
	return ""
}
