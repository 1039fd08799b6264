package selftest

import "slices"

// Killing names the mutants that are meant to fail a clause.
func Killing(clause string) []string {
	var names []string
	for _, m := range Zoo() {
		if slices.Contains(m.Breaks, clause) {
			names = append(names, m.Name)
		}
	}
	return names
}
