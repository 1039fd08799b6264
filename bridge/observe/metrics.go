package observe

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Metrics are one bridge's figures for Prometheus. Labels are endpoints, codes and outcomes, all of a fixed set: no caller, no
// tool and nothing that a request brings is a label.
type Metrics struct {
	families   []*family
	requests   *family
	upstream   *family
	lookups    *family
	violations *family
	steps      *metrics.Counter
	refusals   *family
	shared     *family
}

// A family is what has one name, with each of its labels' values.
type family struct {
	name, help, kind string
	set              *metrics.Set
}

// State is what is asked of the bridge when the figures are read.
type State struct {
	SiteUp      func() bool
	Quarantined func() int
	Callers     func() int
	SharedUp    func() bool // whether the store that replicas share is reached; nil: there is none
}

// NewMetrics makes the figures.
func NewMetrics(s State) *Metrics {
	m := &Metrics{}
	m.lookups = m.family("counter", "bridge_discovery_total", "Look-ups of a caller's tools: hit, miss, stale or refused.")
	m.refusals = m.family("counter", "bridge_refusals_total", "Requests refused, by kind: those of the log's lines `refused`, of which not all are logged.")
	for _, kind := range RefusalKinds {
		m.refusals.count(`kind="%s"`, kind.Name)
	}
	m.requests = m.family("histogram", "bridge_request_seconds", "Requests served, by endpoint and HTTP status.")
	m.upstream = m.family("histogram", "bridge_upstream_seconds", "Requests to the site, by purpose and outcome (HTTP status or error code).")
	m.steps = m.family("counter", "bridge_validation_steps_total", "Steps of checking arguments and results.").count("")
	m.violations = m.family("counter", "bridge_violations_total", "Arguments (input) and results (output) that broke their schema.")
	m.gauge("bridge_callers", "Callers that are remembered.", func() float64 { return float64(s.Callers()) })
	m.gauge("bridge_quarantined_methods", "Methods that could not be made tools.", func() float64 { return float64(s.Quarantined()) })
	m.gauge("bridge_site_up", "Whether calls to the site are let through (1) or the breaker is open (0).", flag(s.SiteUp))
	if s.SharedUp != nil {
		m.shared = m.family("counter", "bridge_shared_total",
			"Commands to the store that replicas share, by purpose and outcome: ok, error, or down where none was sent.")
		m.gauge("bridge_shared_up", "Whether the store that replicas share is reached (1) or this replica goes on alone (0).", flag(s.SharedUp))
	}
	return m
}

func (m *Metrics) family(kind, name, help string) *family {
	f := &family{name, help, kind, metrics.NewSet()}
	m.families = append(m.families, f)
	return f
}

func (m *Metrics) gauge(name, help string, value func() float64) {
	m.family("gauge", name, help).set.NewGauge(name, value)
}

// labelled is the name with the labels of a format.
func (f *family) labelled(labels string, values ...any) string {
	if labels == "" {
		return f.name
	}
	return f.name + "{" + fmt.Sprintf(labels, values...) + "}"
}

func (f *family) count(labels string, values ...any) *metrics.Counter {
	return f.set.GetOrCreateCounter(f.labelled(labels, values...))
}

// buckets go from a cached list to a slow method: 0.25 ms to 16 s.
var buckets = metrics.ExponentialBuckets(0.00025, 4, 9)

func (f *family) observe(took time.Duration, labels string, values ...any) {
	f.set.GetOrCreatePrometheusHistogramExt(f.labelled(labels, values...), buckets).Update(took.Seconds())
}

// flag is 1 or 0.
func flag(is func() bool) func() float64 {
	return func() float64 {
		if is() {
			return 1
		}
		return 0
	}
}

// Handler serves the figures.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for _, f := range m.families {
			if len(f.set.ListMetricNames()) > 0 {
				fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
				f.set.WritePrometheus(w)
			}
		}
	})
}

// Request counts a served request.
func (m *Metrics) Request(endpoint string, status int, took time.Duration) {
	m.requests.observe(took, `endpoint="%s",status="%s"`, endpoint, strconv.Itoa(status))
}

// Upstream counts a request to the site.
func (m *Metrics) Upstream(purpose, outcome string, took time.Duration) {
	m.upstream.observe(took, `outcome="%s",purpose="%s"`, outcome, purpose)
}

// Lookup counts a look-up of a caller's tools.
func (m *Metrics) Lookup(outcome string) { m.lookups.count(`outcome="%s"`, outcome).Inc() }

// Violation counts arguments or a result that broke a schema.
func (m *Metrics) Violation(kind string) { m.violations.count(`kind="%s"`, kind).Inc() }

// Refused counts a refused request.
func (m *Metrics) Refused(kind string) { m.refusals.count(`kind="%s"`, kind).Inc() }

// Steps counts the work of checking a value.
func (m *Metrics) Steps(n int) { m.steps.Add(n) }

// Shared counts a command to the store that replicas share.
func (m *Metrics) Shared(purpose, outcome string) {
	m.shared.count(`outcome="%s",purpose="%s"`, outcome, purpose).Inc()
}
