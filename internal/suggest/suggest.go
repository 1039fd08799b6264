// Package suggest measures how far apart two words are, for messages that name what was probably meant. The caller
// chooses the candidates and how far is too far.
package suggest

// Nearest returns the candidate with the smallest Distance from word, the first of several; "" without candidates.
func Nearest(word string, candidates []string) string {
	nearest, distance := "", -1
	for _, c := range candidates {
		if d := Distance(word, c); distance < 0 || d < distance {
			nearest, distance = c, d
		}
	}
	return nearest
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
