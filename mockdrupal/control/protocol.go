package control

import (
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
)

// Prefix is where the control plane lies on its address.
const Prefix = "/-/mock/"

// AboutPath is where a mock says that it is one, on the site's address: no Drupal has that path.
const AboutPath = Prefix + "about"

// About is what a mock says there.
type About struct {
	Mock    string `json:"mock"`              // `bridgecheck`
	Control string `json:"control,omitempty"` // URL of its control plane; empty: it has none
	Run     string `json:"run,omitempty"`     // address that takes connections until the run ends which serves the mock; empty: none does
}

// JournalPage is what the control plane shows of the journal.
type JournalPage struct {
	Entries []journal.Entry `json:"entries"`
	Last    int64           `json:"last"`    // number of the last request that arrived
	Dropped int64           `json:"dropped"` // entries that the journal dropped because it was full
	Lost    int64           `json:"lost"`    // of the requests after the filter's number, those that it no longer has
}

// Advance moves the site's clock.
type Advance struct {
	By fault.Duration `json:"advance"`
}

// Freeze names the methods that wait for Step, by a path.Match pattern.
type Freeze struct {
	Method string `json:"method"`
}

// Step lets calls that wait go on.
type Step struct {
	Count int `json:"count"`
}
