package compare

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// VerifyOptions say what to compare with what.
type VerifyOptions struct {
	Transcripts string                           // directory of recordings
	Areas       []string                         // names of the areas to compare; none: all that are there
	Site        *fixtures.Site                   // the site that the mock serves, in process; nil: the one that was recorded, as far as the directory says
	URL         string                           // compare this site in place of the mock; quirks cannot be tried there
	Credentials CredentialsOf                    // nil: those of Site
	Progress    func(done, all, differences int) // called after every record; may be nil

	core    *mockdrupal.Core // that of the site at URL
	Drupal  string           // the version of Drupal core at URL; "": the one that it shows. The mock is as the recordings
	JSONRPC int              // the line of the jsonrpc module that the mock is; 0: 2, which was recorded
}

// Report is what a comparison found.
type Report struct {
	Summary     Summary      `json:"summary"`
	Areas       []AreaReport `json:"areas"`
	Differences []Difference `json:"differences"`
	Drupal      string       `json:"drupal,omitempty"` // the version of the site at a URL

	all int // records to compare
}

// Summary counts records.
type Summary struct {
	Records int `json:"records"`
	Agree   int `json:"agree"` // those that agree with a quirk included
	Differ  int `json:"differ"`
}

// AreaReport is the count of one area.
type AreaReport struct {
	Name string `json:"name"`
	Summary
	Quirks []QuirkUse `json:"quirks,omitempty"`
}

// QuirkUse is a record that agrees only with a quirk.
type QuirkUse struct {
	Record string `json:"record"`
	Quirk  string `json:"quirk"`
}

// Agrees reports whether every record agrees.
func (r *Report) Agrees() bool { return r.Summary.Differ == 0 }

// Write prints the report for people: agreement by area, the quirks that it took, and every difference.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	for _, a := range r.Areas {
		fmt.Fprintf(&b, "%-20s %4d of %4d agree\n", a.Name, a.Agree, a.Records)
		for _, q := range a.Quirks {
			fmt.Fprintf(&b, "    %s agrees with the quirk %s\n", q.Record, q.Quirk)
		}
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "DIFFERS %s\n", d)
	}
	writeLeftOut(&b, r.Drupal)
	fmt.Fprintf(&b, "%d of %d records agree\n", r.Summary.Agree, r.Summary.Records)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeLeftOut names the headers that are not compared.
func writeLeftOut(b *strings.Builder, drupal string) {
	if drupal != "" {
		fmt.Fprintf(b, "compared as Drupal %s\n", drupal)
	}
	for _, l := range HeadersLeftOut() {
		fmt.Fprintf(b, "not compared: %s (%s)\n", strings.Join(l.Headers, ", "), l.Why)
	}
}

// Verify replays recordings against the mock, or against the site at URL, and reports where the responses differ. Where a
// record disagrees with the mock its sequence is tried again with each quirk. It fails when the recordings cannot be
// read or the site cannot be reached.
func Verify(ctx context.Context, o VerifyOptions) (*Report, error) {
	areas, err := Load(o.Transcripts)
	if err != nil {
		return nil, err
	}
	if areas, err = pick(areas, o.Areas); err != nil {
		return nil, err
	}
	if o.Site == nil {
		if o.Site, err = siteOf(o.Transcripts); err != nil {
			return nil, fmt.Errorf("verifying: %w", err)
		}
	}
	if o.Credentials == nil && o.URL != "" {
		o.Credentials = SiteCredentials(o.Site)
	}
	variants, err := loadVariants()
	if err != nil {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	report := &Report{Areas: []AreaReport{}, Differences: []Difference{}}
	if o.URL != "" {
		if o.core, err = coreOf(ctx, o.URL, o.Drupal); err != nil {
			return nil, err
		}
		report.Drupal = o.core.Version
	}
	for _, area := range areas {
		report.all += len(area.Records)
	}
	for _, area := range areas {
		if err := report.area(ctx, o, variants[area.Name].read(area), area); err != nil {
			return nil, fmt.Errorf("verifying %s: %w", area.Name, err)
		}
	}
	return report, nil
}

func pick(areas []Area, names []string) ([]Area, error) {
	if len(names) == 0 {
		return areas, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(areas, func(a Area) bool { return a.Name == name }) {
			return nil, fmt.Errorf("there is no area %q among the recordings", name)
		}
	}
	return slices.DeleteFunc(areas, func(a Area) bool { return !slices.Contains(names, a.Name) }), nil
}

// target is a site to replay against.
type target struct {
	client *client
	mock   *mockdrupal.Server // nil for a site elsewhere
}

// open starts a mock for a variant of the site, or names the site at URL.
func (o VerifyOptions) open(v variant, add string, quirks ...string) (*target, error) {
	if o.URL != "" {
		c, err := newClient(o.URL, o.Credentials)
		if err == nil {
			c.core = o.core
		}
		return &target{client: c}, err
	}
	site, err := v.site(o.Site, add)
	if err != nil {
		return nil, err
	}
	settings, err := v.options(quirks)
	if err != nil {
		return nil, err
	}
	settings.JSONRPC = cmp.Or(o.JSONRPC, mockdrupal.Line2)
	d, err := mockdrupal.New(site, settings)
	if err != nil {
		return nil, err
	}
	s, err := d.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	credentials := o.Credentials
	if credentials == nil {
		credentials = SiteCredentials(site)
	}
	c, err := newClient(s.URL, credentials)
	return &target{client: c, mock: s}, err
}

func (t *target) close() {
	t.client.close()
	if t.mock != nil {
		t.mock.Close()
	}
}

// compare replays one record.
func (t *target) compare(ctx context.Context, r Record) ([]Difference, error) {
	if r.FreshCache && t.mock != nil {
		t.mock.ClearCaches()
	}
	response, err := t.client.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.Response.Status == 0 {
		return nil, nil // no response was recorded
	}
	return t.client.compare(r, response), nil
}

// area compares one area. A record whose site had other modules than the one before gets a mock of its own.
func (report *Report) area(ctx context.Context, o VerifyOptions, v variant, area Area) error {
	found := AreaReport{Name: area.Name}
	var t *target
	open := ""
	for i, r := range area.Records {
		add := v.addition(r.ID)
		if t == nil || add != open {
			if t != nil {
				t.close()
			}
			var err error
			if t, err = o.open(v, add); err != nil {
				return err
			}
			open = add
		}
		differences, err := t.compare(ctx, r)
		if err != nil {
			return err
		}
		found.Records++
		if len(differences) > 0 && o.URL == "" {
			quirk, err := o.explain(ctx, v, add, sequence(area.Records[:i+1]))
			if err != nil {
				return err
			}
			if quirk != "" {
				found.Quirks = append(found.Quirks, QuirkUse{r.ID, quirk})
				differences = nil
			}
		}
		if len(differences) == 0 {
			found.Agree++
		} else {
			found.Differ++
			report.Differences = append(report.Differences, differences...)
		}
		if o.Progress != nil {
			o.Progress(report.Summary.Records+found.Records, report.all, len(report.Differences))
		}
	}
	if t != nil {
		t.close()
	}
	report.Areas = append(report.Areas, found)
	report.Summary.Records += found.Records
	report.Summary.Agree += found.Agree
	report.Summary.Differ += found.Differ
	return nil
}

// sequence is the last record with the steps before it, from where the site's caches were last cleared.
func sequence(records []Record) []Record {
	start := len(records) - 1
	for start > 0 && !records[start].FreshCache {
		start--
	}
	return records[start:]
}

// explain tries every quirk on a sequence and returns the one with which its last record agrees, "" when there is none.
func (o VerifyOptions) explain(ctx context.Context, v variant, add string, steps []Record) (string, error) {
	for _, q := range quirk.All() {
		agrees, err := o.agreesWith(ctx, v, add, q.Name, steps)
		if err != nil || agrees {
			return q.Name, err
		}
	}
	return "", nil
}

func (o VerifyOptions) agreesWith(ctx context.Context, v variant, add, quirk string, steps []Record) (bool, error) {
	t, err := o.open(v, add, quirk)
	if err != nil {
		return false, err
	}
	defer t.close()
	var last []Difference
	for _, r := range steps {
		if last, err = t.compare(ctx, r); err != nil {
			return false, err
		}
	}
	return len(last) == 0, nil
}
