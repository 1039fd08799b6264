package contract

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// versions has one file per released version, with the level of each of its clauses. A file never changes.
//
//go:embed versions/*.yaml
var versions embed.FS

// Draft names the contract with all clauses of this build, also those that no released version has.
const Draft = "draft"

// firstVersion is the one that clauses without `since` belong to.
const firstVersion = "1.0"

// draftSuffix marks the name of a version that is not released.
const draftSuffix = "-draft"

// Change is a clause that two versions of the contract have at different levels. An empty level: that version lacks it.
type Change struct {
	ID   string `json:"id"`
	From Level  `json:"from,omitempty"`
	To   Level  `json:"to,omitempty"`
}

// release reads the released versions and holds the clauses to them: none may be gone or have another level, and one that
// is in no released version says since when it is there.
func (c *Contract) release(files fs.FS) error {
	names, err := fs.Glob(files, "versions/*.yaml")
	if err != nil {
		return err
	}
	c.released = map[string]map[string]Level{}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		levels := map[string]Level{}
		if err := yaml.Unmarshal(data, &levels); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.released[strings.TrimSuffix(path.Base(name), ".yaml")] = levels
	}
	var problems []error
	for version, levels := range c.released {
		for id, level := range levels {
			if clause, ok := c.Clause(id); !ok {
				problems = append(problems, fmt.Errorf("the clause %s of the released version %s is gone", id, version))
			} else if clause.Level != level {
				problems = append(problems, fmt.Errorf("%s is a %s, but a %s in the released version %s", id, clause.Level, level, version))
			}
		}
	}
	for _, clause := range c.Clauses {
		since := cmp.Or(clause.Since, firstVersion)
		if levels, ok := c.released[since]; ok && levels[clause.ID] == "" {
			problems = append(problems, fmt.Errorf("%s is not in the released version %s: give it the next version as `since`", clause.ID, since))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("the contract and its released versions differ: %w", err)
	}
	c.Version = c.draft()
	return nil
}

// draft is the name of the contract with all clauses: that of the newest version.
func (c *Contract) draft() string {
	newest := c.Latest()
	for _, clause := range c.Clauses {
		if byVersion(clause.Since, newest) > 0 {
			newest = clause.Since
		}
	}
	if _, ok := c.released[newest]; !ok {
		newest += draftSuffix
	}
	return newest
}

// Latest is the newest released version.
func (c *Contract) Latest() string {
	latest := ""
	for version := range c.released {
		if byVersion(version, latest) > 0 {
			latest = version
		}
	}
	return latest
}

// Versions lists the versions of the contract, oldest first: the released ones and, if there are clauses beyond them, the draft.
func (c *Contract) Versions() []string {
	var all []string
	for version := range c.released {
		all = append(all, version)
	}
	slices.SortFunc(all, byVersion)
	if newest := c.draft(); !slices.Contains(all, newest) {
		all = append(all, newest)
	}
	return all
}

// At returns the contract of a version: its clauses, and all else as it is today. "" is the latest released version, Draft
// has every clause.
func (c *Contract) At(version string) (*Contract, error) {
	version = cmp.Or(version, c.Latest())
	if version == Draft || version == c.draft() {
		return c, nil
	}
	levels, ok := c.released[version]
	if !ok {
		return nil, fmt.Errorf("there is no version %q of the contract; the versions are %s", version, strings.Join(c.Versions(), ", "))
	}
	at := *c
	at.Version, at.Clauses, at.byID = version, nil, map[string]int{}
	for _, clause := range c.Clauses {
		if levels[clause.ID] != "" {
			at.byID[clause.ID] = len(at.Clauses)
			at.Clauses = append(at.Clauses, clause)
		}
	}
	return &at, nil
}

// Diff lists the clauses that the versions from and to do not have in common, in the order of the contract.
func (c *Contract) Diff(from, to string) ([]Change, error) {
	older, err := c.At(from)
	if err != nil {
		return nil, err
	}
	newer, err := c.At(to)
	if err != nil {
		return nil, err
	}
	changes := []Change{}
	for _, id := range c.IDs() {
		before, _ := older.Clause(id)
		after, _ := newer.Clause(id)
		if before.Level != after.Level {
			changes = append(changes, Change{id, before.Level, after.Level})
		}
	}
	return changes, nil
}

// byVersion compares versions by their numbers. What is no version comes first.
func byVersion(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}
