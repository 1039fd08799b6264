package compare_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/compare"
)

// recordings is where the recordings of the real site lie beside the checkout; the test is skipped where they do not.
func recordings(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "drupal-transcripts")
	_, err := os.Stat(dir)
	must.Need(t, err == nil, "SKIPPED: the recordings of the real site are not beside the checkout: %v", err)
	return dir
}

func TestMockAgreesWithTheRealSite(t *testing.T) {
	report := must.Get(compare.Verify(t.Context(), compare.VerifyOptions{
		Transcripts: recordings(t),
		Areas:       []string{"jsonrpc_post", "jsonrpc_methods", "jsonrpc_get", "jsonrpc_verbs", "login"},
	}))(t)
	for _, d := range report.Differences {
		t.Error(d)
	}
	for _, a := range report.Areas {
		t.Logf("%-16s %d of %d agree", a.Name, a.Agree, a.Records)
		for _, q := range a.Quirks {
			t.Logf("    %s with the quirk %s", q.Record, q.Quirk)
		}
	}
	t.Logf("transcripts: %d of %d records agree", report.Summary.Agree, report.Summary.Records)
}

// Records of a Drupal 10.4 on which the mock differed once are among the cases, in one file for two areas.
func TestMockAgreesWithTheCases(t *testing.T) {
	from, dir := recordings(t), t.TempDir()
	cases := string(must.Get(os.ReadFile(filepath.Join(from, "..", "cases", "site-2x.jsonl")))(t))
	must.Do(t, os.CopyFS(dir, os.DirFS(from)))
	areas := []string{"jsonrpc_methods", "jsonrpc_post"}
	for _, area := range areas {
		records := regexp.MustCompile(`(?m)^\{"id": "`+area+`/.*\n`).FindAllString(cases, -1)
		must.Do(t, os.WriteFile(filepath.Join(dir, area+".jsonl"), []byte(strings.Join(records, "")), 0o600))
	}
	report := must.Get(compare.Verify(t.Context(), compare.VerifyOptions{Transcripts: dir, Areas: areas}))(t)
	s := report.Summary
	must.Expect(t, s.Agree == 3 && s.Records == 3, "%d of %d records agree, want 3: %v", s.Agree, s.Records, report.Differences)
}

// notMocked are the records to which the mock does not respond as recorded, and why.
var notMocked = map[string]string{
	"anon_granted/describe_known_after":         "the sticky cache after a request that stands elsewhere in the file",
	"anon_granted/describe_known_after_missing": "the sticky cache after a request that stands elsewhere in the file",
	"head/poison_2":                     "the sticky cache after a request of another token",
	"anon_granted/maxage_list_304":      "the page cache with a maximal age",
	"anon_granted/maxage_list_1":        "the headers of the page cache with a maximal age",
	"anon_granted/maxage_list_2":        "the headers of the page cache with a maximal age",
	"anon_granted/maxage_list_inm_only": "the headers of the page cache with a maximal age",
	"anon_granted/maxage_describe_404":  "the headers of the page cache with a maximal age",
	"head/anonrouter_contentOnly":       "routes that an anonymous process rebuilt",
	"head/wellknown_server":             "metadata of OAuth grants that the mock does not have",
}

func TestModuleVersionsAgreeWithTheRealModule(t *testing.T) {
	report := must.Get(compare.Verify(t.Context(), compare.VerifyOptions{Transcripts: recordings(t), Areas: []string{
		"a_bearer", "anon_granted", "bulk_list", "faulty_tool", "head", "jsonrpc_cache_leak", "jsonrpc_flood",
		"mcp_auth", "mcp_cache", "mcp_cache_perm", "mcp_describe", "mcp_invoke", "mcp_invoke_more", "mcp_list"}}))(t)
	for _, d := range report.Differences {
		if why, known := notMocked[d.Record]; known {
			t.Logf("%s: %s", d, why)
			continue
		}
		t.Error(d)
	}
	for _, a := range report.Areas {
		t.Logf("%-18s %d of %d agree", a.Name, a.Agree, a.Records)
	}
	t.Logf("module: %d of %d records agree", report.Summary.Agree, report.Summary.Records)
}
