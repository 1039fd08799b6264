package selftest

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/selftest/mutants"
)

func TestNarrowKeepsTheFirstOfEachGoldenSetWhole(t *testing.T) {
	all := mutants.Mutants()
	first, second, alone := all[0], all[1], all[2]
	golden := Sets{
		first.Name:  {"list/answers-json", "mcp/tools-list"},
		second.Name: {"list/answers-json", "mcp/tools-list"},
		alone.Name:  {"list/names-unique"},
	}
	for _, whole := range []mutants.Mutant{first, alone, all[3], mutants.Variants()[0]} {
		if ids, err := Narrow(whole, golden); err != nil || len(ids) > 0 {
			t.Errorf("%s is tested only by %v: %v", whole.Name, ids, err)
		}
	}
	ids, err := Narrow(second, golden)
	if err != nil {
		t.Fatal(err)
	}
	areas := map[string]int{}
	for _, id := range ids {
		area, _, _ := strings.Cut(id, "/")
		areas[area]++
	}
	if areas["list"] < 10 || areas["mcp"] < 10 || areas["http"] > 0 || areas["fresh"] > 0 {
		t.Errorf("%s is tested by the areas %v, not by those of its set", second.Name, areas)
	}
	for _, id := range second.Breaks {
		if !strings.Contains(strings.Join(ids, " "), id) {
			t.Errorf("%s breaks %s, which is left out", second.Name, id)
		}
	}
}
