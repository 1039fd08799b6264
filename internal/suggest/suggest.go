// Package suggest finds the candidate that a misspelt word most resembles. It compares words only: the caller chooses the
// candidates and writes the message.
package suggest

import "strings"

// Nearest returns the candidate that is the fewest edits away from word, letter case aside, the first of several; "" when
// there is none.
func Nearest(word string, candidates []string) string {
	best, _ := nearest(word, candidates)
	return best
}

// Near is Nearest for a candidate that is near enough to be the intended word: at most every third letter differs, and
// one more. Otherwise it returns "".
func Near(word string, candidates []string) string {
	best, distance := nearest(word, candidates)
	if distance > len(word)/3+1 {
		return ""
	}
	return best
}

// Among says in a few words what to write in place of a word: the candidate that is near enough, or else all of them.
func Among(word string, candidates []string) string {
	return Or(word, candidates, "there are "+strings.Join(candidates, ", "))
}

// Or is Among for more candidates than a message holds: where none is near enough, it says something else.
func Or(word string, candidates []string, otherwise string) string {
	if near := Near(word, candidates); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

func nearest(word string, candidates []string) (best string, distance int) {
	word = strings.ToLower(word)
	for i, c := range candidates {
		if d := Distance(word, strings.ToLower(c)); i == 0 || d < distance {
			best, distance = c, d
		}
	}
	return best, distance
}

// Distance counts the insertions, deletions and replacements of bytes that turn a into b (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
