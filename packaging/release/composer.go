package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// composerVersion is the version as Composer takes it: a release, or the name of a branch.
func composerVersion(version string) string {
	if composerRelease.MatchString(version) {
		return version
	}
	return "dev-" + version
}

var composerRelease = regexp.MustCompile(`^\d+\.\d+\.\d+(-(alpha|beta|rc)(\.\d+)?)?$`)

// composer writes the directory of the Composer package: its files, the archives, and their checksums.
func (r *release) composer() error {
	out := filepath.Join(r.out, "composer")
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	files, err := filesBelow("packaging/composer", ".")
	if err != nil {
		return err
	}
	for i := range files {
		switch files[i].name {
		case "bin/bridgecheck":
			files[i].mode = 0o755
		case "composer.json":
			var about map[string]any
			if err := json.Unmarshal(files[i].data, &about); err != nil {
				return fmt.Errorf("read packaging/composer/composer.json: %w", err)
			}
			about["version"] = composerVersion(r.version)
			if files[i].data, err = encode(about); err != nil {
				return err
			}
		}
	}
	for _, p := range r.platforms {
		data, err := os.ReadFile(filepath.Join(r.out, r.archive(p)))
		if err != nil {
			return fmt.Errorf("find the archive for %s: %w", p, err)
		}
		files = append(files, file{"archives/" + r.archive(p), data, 0o644})
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "checksums.txt"))
	if err != nil {
		return err
	}
	legal, err := readFiles("LICENSE", "THIRD_PARTY_NOTICES")
	if err != nil {
		return err
	}
	fmt.Println(out)
	return r.writeFiles(out, append(append(files, file{"checksums.txt", sums, 0o644}), legal...))
}
