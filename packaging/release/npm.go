package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// npmOS and npmCPU are Node's names, process.platform and process.arch, of what Go calls otherwise.
var (
	npmOS  = map[string]string{"windows": "win32"}
	npmCPU = map[string]string{"amd64": "x64"}
)

// npmPlatform is the platform in Node's names.
func npmPlatform(p platform) platform {
	if name, ok := npmOS[p.os]; ok {
		p.os = name
	}
	if name, ok := npmCPU[p.arch]; ok {
		p.arch = name
	}
	return p
}

// npm writes the npm packages as npm pack does, so that npm is not needed: bridgecheck, which people install, and one for
// each platform, which npm installs where its os and cpu match.
func (r *release) npm() error {
	out := filepath.Join(r.out, "npm")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	legal, err := readFiles("LICENSE", "THIRD_PARTY_NOTICES")
	if err != nil {
		return err
	}
	optional := map[string]string{}
	for _, p := range r.platforms {
		binary, err := os.ReadFile(filepath.Join(r.binaries, p.os+"_"+p.arch, p.binary()))
		if err != nil {
			return fmt.Errorf("find the binary for %s: %w", p, err)
		}
		npm := npmPlatform(p)
		name := "@bridgecheck/" + npm.os + "-" + npm.arch
		optional[name] = r.version
		about, err := encode(map[string]any{
			"name": name, "version": r.version, "description": "The program of bridgecheck for " + p.String(), "license": "MIT",
			"os": []string{npm.os}, "cpu": []string{npm.arch}, "files": []string{"bin", "THIRD_PARTY_NOTICES"}, "preferUnplugged": true,
		})
		if err != nil {
			return err
		}
		files := append([]file{{"package.json", about, 0o644}, {"bin/" + p.binary(), binary, 0o755}}, legal...)
		if err := r.packNPM(filepath.Join(out, "bridgecheck-"+npm.os+"-"+npm.arch), files); err != nil {
			return err
		}
	}
	files, err := filesBelow("packaging/npm", ".")
	if err != nil {
		return err
	}
	for i := range files {
		switch files[i].name {
		case "bin/bridgecheck.js":
			files[i].mode = 0o755
		case "package.json":
			var about map[string]any
			if err := json.Unmarshal(files[i].data, &about); err != nil {
				return fmt.Errorf("read packaging/npm/package.json: %w", err)
			}
			about["version"], about["optionalDependencies"] = r.version, optional
			if files[i].data, err = encode(about); err != nil {
				return err
			}
		}
	}
	return r.packNPM(filepath.Join(out, "bridgecheck"), append(files, legal...))
}

// packNPM writes a package, whose files are in a directory of this name by npm's convention.
func (r *release) packNPM(name string, files []file) error {
	packed, err := pack("package", files, false, r.time)
	if err != nil {
		return err
	}
	name += "-" + r.version + ".tgz"
	fmt.Printf("%s: %.1f MiB\n", name, float64(len(packed))/(1<<20))
	return os.WriteFile(name, packed, 0o644)
}

// encode writes JSON as people do. Members are sorted by name.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return b.Bytes(), err
}

// readFiles reads files in the current directory.
func readFiles(names ...string) (files []file, err error) {
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, data, 0o644})
	}
	return files, nil
}

// writeFiles writes files into a directory, with the time of the release.
func (r *release) writeFiles(dir string, files []file) error {
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, f.mode); err != nil {
			return err
		}
		if err := os.Chtimes(name, r.time, r.time); err != nil {
			return err
		}
	}
	return nil
}
