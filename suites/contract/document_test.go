package contract

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The documents in docs are what this build prints by default: those of the latest released version.
func TestTheDocumentsAreUpToDate(t *testing.T) {
	all, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	c, err := all.At("")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"contract.md": c.Markdown(), "openapi.yaml": c.OpenAPI()} {
		golden := "../../docs/" + name
		if *update {
			if err := os.WriteFile(golden, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(golden)
		if err != nil || string(got) != want {
			t.Errorf("docs/%s is not what the contract says (%v): go test ./suites/contract -update", name, err)
		}
	}
}

// A document that is no YAML, or has a mark or a reference that leads nowhere, would break every generator.
func TestOpenAPIHangsTogether(t *testing.T) {
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	text := c.OpenAPI()
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || strings.Contains(text, "{{") {
		t.Fatalf("the document is not YAML, or has a mark for which nothing is inserted: %v", err)
	}
	refs := regexp.MustCompile(`"#/([^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(refs) < 20 {
		t.Errorf("only %d references were found", len(refs))
	}
	for _, ref := range refs {
		var at any = doc
		for part := range strings.SplitSeq(ref[1], "/") {
			object, _ := at.(map[string]any)
			at = object[part]
		}
		if at == nil {
			t.Errorf("%s leads nowhere", ref[0])
		}
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
