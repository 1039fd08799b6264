// Command weights writes internal/engine/weights.json: how long the check of each clause takes. Its arguments are the reports of three
// runs: of the reference bridge in process, of a bridge of --exec, and of one before a slow site; make weights makes them.
// Clauses that they do not have keep their weights, those of no check are taken out, and new ones get a default.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/reports"
)

const (
	file       = "internal/engine/weights.json"
	unmeasured = 100 // milliseconds
	least      = 10
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "weights: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 0 && len(args) != 3 {
		return fmt.Errorf("give three reports, of a run in process, of one with --exec and of one before a slow site, or none to add the new clauses; got %d", len(args))
	}
	measured := make([]map[string]int, 3)
	for i, path := range args {
		report, err := reports.ReadFile(path)
		if err != nil {
			return err
		}
		measured[i] = map[string]int{}
		for _, r := range report.Results {
			if r.Verdict != reports.NotApplicable {
				measured[i][r.ID] = rounded(r.DurationMS)
			}
		}
	}
	checked, err := engine.Checked()
	if err != nil {
		return err
	}
	all := map[string]engine.Weight{}
	for _, c := range checked {
		w, known := engine.Weights()[c.ID]
		if !known {
			w = engine.Weight{InProcess: unmeasured, RealTime: unmeasured}
		}
		if ms, ok := measured[0][c.ID]; ok {
			w.InProcess = ms
		}
		if ms, ok := measured[1][c.ID]; ok {
			share := float64(measured[2][c.ID]) / float64(total(measured[2])) // before a slow site
			w.RealTime = max(ms, rounded(share*float64(total(measured[1]))))
		} else if measured[1] != nil { // it does not apply there
			w.RealTime = w.InProcess
		}
		all[c.ID] = w
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func total(measured map[string]int) (sum int) {
	for _, ms := range measured {
		sum += ms
	}
	return sum
}

// rounded has two digits, so that a second measurement differs where a check does.
func rounded(ms float64) int {
	step := 10.0
	for step*100 <= ms {
		step *= 10
	}
	return max(least, int(math.Round(ms/step)*step))
}
