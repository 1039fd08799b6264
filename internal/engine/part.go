package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// Part is what one process found in a pass over the checks, of which other processes may have tested others. Its verdicts
// are those before the culprit rule, which looks at what all of them found: Join applies it. As JSON it loses nothing.
type Part struct {
	Contract        string            // as in Options
	Extra           []contract.Clause // as the checks in Options bring them
	Selected        []string          // the clauses that the whole pass tests, in the order of the contract
	Report          *reports.Report   // of the checks that this process tested, not summarized
	Noticed         []reports.Result  // what the checks of other clauses broke, though the clause's own check may pass
	Exempt          []string          // the clauses that are not testable for the machine or the site
	Unauthenticated bool              // the bridge refuses the agent that the run was given
	Unsettled       []string          // clauses of which other processes that tested the bridge may explain what was found
	Carried         string            // why a verdict may depend on what the process tested before; "": none does

	cutOff []reports.Exchange // of the check that the end of the pass ended
}

// Ended notes that the bridge ended by itself while a clause was tested, how, and what it printed last. The clause fails whatever its level, as the
// bridge breaks more than the clause. What was found after it is left out, and the part is no longer cut short or carried.
func (p *Part) Ended(clause, how, printed string, after []string) error {
	p.Report.Results = slices.DeleteFunc(p.Report.Results, func(r reports.Result) bool { return slices.Contains(after, r.ID) })
	i := slices.IndexFunc(p.Report.Results, func(r reports.Result) bool { return r.ID == clause })
	if i < 0 { // it was cut off
		known, err := contractAt(p.Contract, p.Extra)
		if err != nil {
			return err
		}
		c, _ := known.Clause(clause)
		cutOff := check.NewResult(c)
		cutOff.Evidence = append([]reports.Exchange{}, p.cutOff...)
		i, p.Report.Results = len(p.Report.Results), append(p.Report.Results, cutOff)
	}
	r := &p.Report.Results[i]
	why := reports.Finding{Subject: "the bridge", Expected: reports.ToGoOn, Actual: "it ended by itself: " + how + "; " + printed}
	lost := func(e reports.Exchange) bool { // not for the check, which went away, and not because nobody was there any more
		return e.Response == nil && !strings.Contains(e.Error, "context canceled") && e.Error != patience.ErrGone.Error()
	}
	if at := slices.IndexFunc(r.Evidence, lost); at >= 0 {
		why.Request = &at
	}
	for _, f := range r.Findings {
		if why.Request == nil && f.Request != nil && r.Evidence[*f.Request].Response == nil {
			why.Request = f.Request
		}
	}
	if at := slices.IndexFunc(r.Evidence, func(e reports.Exchange) bool { return e.Response == nil }); why.Request == nil && at >= 0 {
		why.Request = &at // no finding has it, as where the machine was overloaded, too
	}
	if why.Request != nil {
		why.Subject += ", after " + r.Evidence[*why.Request].Asks()
	}
	r.Verdict, r.Findings, r.Remedy = reports.Fail, append([]reports.Finding{why}, r.Findings...), ""
	r.Conclude()
	r.BlockedBy = nil
	p.Report.CutShort, p.Carried = "", ""
	return nil
}

// Continue adds a part with the checks that p left.
func (p *Part) Continue(rest *Part) {
	p.Report.Results = append(p.Report.Results, rest.Report.Results...)
	p.Report.DurationMS += rest.Report.DurationMS
	p.Report.CutShort = rest.Report.CutShort
	p.Noticed = append(p.Noticed, rest.Noticed...)
	p.Exempt = append(p.Exempt, rest.Exempt...)
}

// contractAt is the contract of a version, as Options name it, with clauses that were added.
func contractAt(version string, extra []contract.Clause) (*contract.Contract, error) {
	all, err := contract.Load()
	if err != nil {
		return nil, err
	}
	at, err := all.At(version)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	whole, err := at.With(extra...)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	return whole, nil
}

// Unsettle takes the unsettled results out of the parts of a pass, and returns their clauses, for one process that tests them
// alone; none where the parts were cut short.
func Unsettle(parts []*Part) map[string]int {
	clauses := map[string]int{}
	if slices.ContainsFunc(parts, func(p *Part) bool { return p.Report.CutShort != "" }) {
		return nil
	}
	for _, p := range parts {
		for _, id := range p.Unsettled {
			clauses[id] = 0
		}
		p.leave(p.Unsettled)
		p.Unsettled = nil
	}
	return clauses
}

// leave takes out of p what it found of some clauses.
func (p *Part) leave(clauses []string) {
	p.Exempt = slices.DeleteFunc(p.Exempt, func(id string) bool { return slices.Contains(clauses, id) })
	found := func(r reports.Result) bool { return slices.Contains(clauses, r.ID) }
	p.Report.Results, p.Noticed = slices.DeleteFunc(p.Report.Results, found), slices.DeleteFunc(p.Noticed, found)
}

// CutShort takes out of p what parts that test its clauses again have found, which ended for a reason before they were through; "":
// as one of them says. False: they were through.
func (p *Part) CutShort(why string, again []*Part) bool {
	var found []string
	for _, other := range again {
		why = cmp.Or(why, other.Report.CutShort)
		for _, r := range other.Report.Results {
			found = append(found, r.ID)
		}
	}
	p.leave(found)
	p.Report.CutShort = why
	return why != ""
}

// Join makes the report of a pass of all its parts. What no part has tested is not testable. progress, if not nil, receives
// the verdicts that the culprit rule changes.
func Join(progress func(reports.Result), parts ...*Part) (*reports.Report, error) {
	o, joined, err := gather(progress, parts)
	if err != nil {
		return nil, err
	}
	o.settle()
	joined.Results = o.inOrder()
	joined.Summarize()
	return joined, nil
}

// gather puts the parts of a pass together, as they are before the culprit rule.
func gather(progress func(reports.Result), parts []*Part) (*outcome, *reports.Report, error) {
	if len(parts) == 0 {
		return nil, nil, errors.New("there is no part to join")
	}
	first := parts[0]
	at, err := contractAt(first.Contract, first.Extra)
	if err != nil {
		return nil, nil, err
	}
	joined := *first.Report
	var all []*reports.Report
	o := &outcome{contract: at, selected: first.Selected, claims: first.Report.Capabilities, results: map[string]reports.Result{}, progress: progress}
	for _, p := range parts {
		if !slices.Equal(p.Selected, first.Selected) || p.Report.Ledger.Revision != at.Revision {
			return nil, nil, errors.New("the parts do not test the same clauses: run them with the same options and one bridgecheck")
		}
		for _, r := range p.Report.Results {
			if _, twice := o.results[r.ID]; twice {
				return nil, nil, fmt.Errorf("%s was tested twice", r.ID)
			}
			o.results[r.ID] = r
		}
		o.exempt = append(o.exempt, p.Exempt...)
		o.unauthenticated = o.unauthenticated || p.Unauthenticated
		joined.CutShort, joined.NoBridge = cmp.Or(joined.CutShort, p.Report.CutShort), cmp.Or(joined.NoBridge, p.Report.NoBridge)
		all = append(all, p.Report)
	}
	for _, p := range parts {
		for _, n := range p.Noticed {
			if r := o.results[n.ID]; r.Verdict == reports.Pass {
				n.Requests, n.WaitedMS, n.DurationMS = r.Requests, r.WaitedMS, r.DurationMS
				o.results[n.ID] = n
			}
		}
	}
	joined.Started, joined.DurationMS = reports.Wall(all)
	o.cut = joined.CutShort != ""
	if strings.HasPrefix(joined.CutShort, "the site ") { // what it was to blame for is no finding, whichever process met it first
		for id, r := range o.results {
			if e, ok := r.Blamed(); ok && e.Response != nil && client.Failing(e.Response.Status) {
				delete(o.results, id)
			}
		}
	}
	return o, &joined, nil
}

// partJSON is a Part as JSON: with what report.json has elsewhere or not at all.
type partJSON struct {
	Contract        string                    `json:"contract,omitempty"`
	Extra           []contract.Clause         `json:"extra,omitempty"`
	Selected        []string                  `json:"selected"`
	Exempt          []string                  `json:"exempt,omitempty"`
	Unauthenticated bool                      `json:"unauthenticated,omitempty"`
	Unsettled       []string                  `json:"unsettled,omitempty"`
	Carried         string                    `json:"carried,omitempty"`
	Tested          map[string][]reports.Part `json:"tested,omitempty"`  // by clause
	Whole           map[string]map[int][]byte `json:"whole,omitempty"`   // by clause and exchange: bodies of requests
	Noticed         []json.RawMessage         `json:"noticed,omitempty"` // each as a report, for several may be of one clause
	Report          json.RawMessage           `json:"report"`
}

// MarshalJSON writes the part with its report as report.json has it.
func (p *Part) MarshalJSON() ([]byte, error) {
	var report bytes.Buffer
	if err := reports.WriteJSON(&report, p.Report); err != nil {
		return nil, err
	}
	j := partJSON{Contract: p.Contract, Extra: p.Extra, Selected: p.Selected, Exempt: p.Exempt,
		Unauthenticated: p.Unauthenticated, Unsettled: p.Unsettled, Carried: p.Carried,
		Tested: map[string][]reports.Part{}, Whole: map[string]map[int][]byte{}, Report: report.Bytes()}
	for i := range p.Noticed {
		var noticed bytes.Buffer
		r := *p.Report
		r.Results = p.Noticed[i : i+1]
		if err := reports.WriteJSON(&noticed, &r); err != nil {
			return nil, err
		}
		j.Noticed = append(j.Noticed, noticed.Bytes())
	}
	for _, r := range p.Report.Results {
		if len(r.Tested) > 0 {
			j.Tested[r.ID] = r.Tested
		}
		for i, e := range r.Evidence {
			if e.Request.Whole == nil {
				continue
			}
			if j.Whole[r.ID] == nil {
				j.Whole[r.ID] = map[int][]byte{}
			}
			j.Whole[r.ID][i] = e.Request.Whole
		}
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses what it would not write.
func (p *Part) UnmarshalJSON(data []byte) error {
	var j partJSON
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return err
	}
	report, err := reports.Parse(j.Report)
	if err != nil {
		return err
	}
	for i := range report.Results {
		r := &report.Results[i]
		r.Tested = j.Tested[r.ID]
		for at, body := range j.Whole[r.ID] {
			if at < 0 || at >= len(r.Evidence) {
				return fmt.Errorf("%s has a body for the exchange %d: the evidence has %d", r.ID, at, len(r.Evidence))
			}
			r.Evidence[at].Request.Whole = body
		}
	}
	var noticed []reports.Result
	for _, n := range j.Noticed {
		r, err := reports.Parse(n)
		if err != nil {
			return err
		}
		noticed = append(noticed, r.Results...)
	}
	*p = Part{Noticed: noticed, Contract: j.Contract, Extra: j.Extra, Selected: j.Selected, Report: report, Exempt: j.Exempt,
		Unauthenticated: j.Unauthenticated, Unsettled: j.Unsettled, Carried: j.Carried}
	return nil
}

// KeepOnly takes clauses out of what the pass tests, as a filter does.
func (p *Part) KeepOnly(keep func(id string) bool) {
	n := len(p.Selected)
	p.Selected = slices.DeleteFunc(p.Selected, func(id string) bool { return !keep(id) })
	p.Report.Filtered = p.Report.Filtered || len(p.Selected) < n
}

// known are the ids of the clauses that the part's run knows.
func (p *Part) known() []string {
	all, err := contractAt(p.Contract, p.Extra)
	if err != nil {
		return nil
	}
	return all.IDs()
}
