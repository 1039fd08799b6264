package mutants

import (
	"context"
	"testing"
)

// What a busy machine may have spoilt is judged once more, when nothing else runs; what is as expected is not.
func TestTheUnexpectedIsJudgedAgain(t *testing.T) {
	asked := map[string]int{}
	judge := func(ctx context.Context, m Mutant) (Row, error) {
		asked[m.Name]++
		row := Row{Name: m.Name, Correct: true, Fell: []string{}}
		if m.Name == "blamed once" && asked[m.Name] == 1 {
			row.Fell = []string{"list/order-stable"}
		}
		return row, ctx.Err()
	}
	matrix, err := Selftest(t.Context(), []Mutant{{Name: "left in peace"}, {Name: "blamed once"}}, 1, judge, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := matrix.Figures; f.FalseAlarms != 0 || f.Again != 1 {
		t.Errorf("%d false alarms and %d judged again, not 0 and 1", f.FalseAlarms, f.Again)
	}
	if asked["left in peace"] != 1 || asked["blamed once"] != 2 {
		t.Errorf("asked %v, not the blamed one alone twice", asked)
	}
}
