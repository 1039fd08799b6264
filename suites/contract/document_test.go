package contract

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The documents in docs are what this build prints by default: those of the latest released version.
func TestTheDocumentsAreUpToDate(t *testing.T) {
	all := must.Get(Load())(t)
	c := must.Get(all.At(""))(t)
	documents := c.Pages()
	documents["openapi.yaml"] = c.OpenAPI()
	for name, want := range documents {
		golden := "../../docs/" + name
		if *update {
			must.Do(t, os.MkdirAll(path.Dir(golden), 0o755))
			must.Do(t, os.WriteFile(golden, []byte(want), 0o644))
		}
		got, err := os.ReadFile(golden)
		must.Expect(t, err == nil && string(got) == want,
			"docs/%s is not what the contract says (%v): go test ./suites/contract -update", name, err)
	}
	files, err := filepath.Glob("../../docs/contract/*")
	must.Assert(t, err == nil && len(files) >= 15, "docs/contract has %d files, %v", len(files), err)
	for _, file := range files {
		must.Expect(t, documents["contract/"+filepath.Base(file)] != "",
			"docs/contract/%s is the page of no area: remove it", filepath.Base(file))
	}
}

// A document that is no YAML, or has a mark or a reference that leads nowhere, would break every generator.
func TestOpenAPIHangsTogether(t *testing.T) {
	c := must.Get(Load())(t)
	text := c.OpenAPI()
	var doc map[string]any
	err := yaml.Unmarshal([]byte(text), &doc)
	must.Assert(t, err == nil && !strings.Contains(text, "{{"), "the document is not YAML, or has a mark for which nothing is inserted: %v", err)
	refs := regexp.MustCompile(`"#/([^"]+)"`).FindAllStringSubmatch(text, -1)
	must.Expect(t, len(refs) >= 20, "only %d references were found", len(refs))
	for _, ref := range refs {
		var at any = doc
		for part := range strings.SplitSeq(ref[1], "/") {
			object, _ := at.(map[string]any)
			at = object[part]
		}
		must.Expect(t, at != nil, "%s leads nowhere", ref[0])
	}
}

func TestTheDocumentIsComplete(t *testing.T) {
	c := must.Get(Load())(t)
	text, pages := c.Markdown(), c.Pages()
	must.Expect(t, !strings.Contains(text, "{{"), "the document has a mark for which nothing is inserted")
	for _, clause := range c.Clauses {
		must.Expect(t, strings.Contains(text, "\n#### "+clause.ID+"\n") && strings.Contains(pages["contract/"+clause.Area+".md"], "\n## "+clause.ID+"\n"),
			"the document, or the page of its area, has no %s", clause.ID)
	}
	var codes []string
	for _, all := range c.Codes {
		codes = append(codes, all...)
	}
	for _, code := range codes {
		must.Expect(t, c.Meanings[code] != "", "meanings does not say when %s is sent", code)
	}
	for code := range c.Meanings {
		must.Expect(t, slices.Contains(codes, code), "meanings has %s, which is no code", code)
	}
	for _, capability := range c.Capabilities {
		must.Expect(t, capability.Claim != "", "claim does not say when a bridge claims %s", capability.Name)
	}
}
