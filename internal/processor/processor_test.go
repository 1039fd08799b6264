package processor

import (
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestWhatOthersComputeTakesOfAProcessor(t *testing.T) {
	for name, c := range map[string]struct {
		heldUp      int // rounds of ten
		least, most float64
	}{"alone": {0, 1, 1}, "interrupted now and then": {1, 0.7, 0.8}, "with others": {5, 0.35, 0.45}, "with many others": {9, 0.25, 0.3}} {
		n := 0
		got := share(100, func() time.Duration {
			if n++; n%10 < c.heldUp {
				return 4 * time.Millisecond
			}
			return time.Millisecond
		})
		must.Expect(t, got >= c.least && got <= c.most, "%s: the share is %.2f, want %.2f to %.2f", name, got, c.least, c.most)
	}
}

func TestWhatThisProcessComputesIsUsed(t *testing.T) {
	before, _ := Used()
	Share(100)
	after, _ := Used()
	must.Expect(t, after > before, "%s were used before a computation and %s after it", before, after)
}

func TestShareIsAPart(t *testing.T) {
	for name, measure := range map[string]func(int) float64{"share": Share, "granted": Granted} {
		got := measure(10)
		must.Expect(t, got > 0 && got <= 1, "%s: the share is %v", name, got)
	}
}
