package contract

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The document in docs is what this build prints.
func TestTheDocumentIsUpToDate(t *testing.T) {
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	const golden = "../../docs/contract.md"
	want := c.Markdown()
	if *update {
		if err := os.WriteFile(golden, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(golden)
	if err != nil || string(got) != want {
		t.Errorf("docs/contract.md is not what the contract says (%v): go test ./suites/contract -update", err)
	}
}

func TestTheDocumentIsComplete(t *testing.T) {
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	text := c.Markdown()
	if strings.Contains(text, "{{") {
		t.Error("the document has a mark for which nothing is inserted")
	}
	for _, id := range c.IDs() {
		if !strings.Contains(text, "\n#### "+id+"\n") {
			t.Errorf("the document has no %s", id)
		}
	}
	var codes []string
	for _, all := range c.Codes {
		codes = append(codes, all...)
	}
	for _, code := range codes {
		if c.Meanings[code] == "" {
			t.Errorf("meanings does not say when %s is sent", code)
		}
	}
	for code := range c.Meanings {
		if !slices.Contains(codes, code) {
			t.Errorf("meanings has %s, which is no code", code)
		}
	}
	for _, capability := range c.Capabilities {
		if capability.Claim == "" {
			t.Errorf("claim does not say when a bridge claims %s", capability.Name)
		}
	}
}
