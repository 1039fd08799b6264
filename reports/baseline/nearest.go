package baseline

import (
	"fmt"

	"github.com/bridgecheck/bridgecheck/internal/suggest"
)

// didYouMean suggests the candidate nearest to word, where one is near enough to be what was meant.
func didYouMean(word string, candidates []string) string {
	best, distance := "", len(word)/3+2
	for _, c := range candidates {
		if d := suggest.Distance(word, c); d < distance {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}
