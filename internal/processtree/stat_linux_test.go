package processtree

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestParseStat(t *testing.T) {
	for stat, want := range map[string]process{
		"12 (sleep) S 7 9 9 0":          {parent: 7, group: 9},
		"12 (a) R 1 (b) Z 7 9 9 0":      {parent: 7, group: 9, zombie: true},
		"12 (line\nend) X 7 9 9 0":      {parent: 7, group: 9, zombie: true},
		"12 (\xff\xfe) S 4294 12 12 -1": {parent: 4294, group: 12},
	} {
		got, ok := parseStat([]byte(stat))
		must.Expect(t, ok && got == want, "parseStat(%q) = %+v, %t, expected %+v", stat, got, ok, want)
	}
	for _, stat := range []string{"", "12 (sleep)", "12 (sleep) S", "12 (sleep) S x y", "12 sleep S"} {
		got, ok := parseStat([]byte(stat))
		must.Expect(t, !ok, "parseStat(%q) = %+v, expected a refusal", stat, got)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b) S 7 9 9 0"))
	f.Fuzz(func(t *testing.T, stat []byte) { parseStat(stat) })
}
