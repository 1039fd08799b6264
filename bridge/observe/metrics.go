package observe

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are one bridge's figures for Prometheus, in a registry of their own. Labels are endpoints, codes and outcomes, all
// of a fixed set: no caller, no tool and nothing that a request brings is a label.
type Metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.HistogramVec
	upstream   *prometheus.HistogramVec
	lookups    *prometheus.CounterVec
	violations *prometheus.CounterVec
	steps      prometheus.Counter
	refusals   *prometheus.CounterVec
	shared     *prometheus.CounterVec
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
	// From a cached list to a slow method: 0.25 ms to 16 s.
	buckets := prometheus.ExponentialBuckets(0.00025, 4, 9)
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bridge_request_seconds", Help: "Requests served, by endpoint and HTTP status.", Buckets: buckets,
		}, []string{"endpoint", "status"}),
		upstream: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bridge_upstream_seconds", Help: "Requests to the site, by purpose and outcome (HTTP status or error code).", Buckets: buckets,
		}, []string{"purpose", "outcome"}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bridge_discovery_total", Help: "Look-ups of a caller's tools: hit, miss, stale or refused.",
		}, []string{"outcome"}),
		violations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bridge_violations_total", Help: "Arguments (input) and results (output) that broke their schema.",
		}, []string{"kind"}),
	}
	m.steps = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "bridge_validation_steps_total", Help: "Steps of checking arguments and results.",
	})
	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bridge_refusals_total", Help: "Requests refused, by kind: those of the log's lines `refused`, of which not all are logged.",
	}, []string{"kind"})
	for _, kind := range RefusalKinds {
		m.refusals.WithLabelValues(kind.Name)
	}
	m.registry.MustRegister(m.refusals, m.requests, m.upstream, m.lookups, m.violations, m.steps,
		gauge("bridge_site_up", "Whether calls to the site are let through (1) or the breaker is open (0).", flag(s.SiteUp)),
		gauge("bridge_quarantined_methods", "Methods that could not be made tools.", func() float64 { return float64(s.Quarantined()) }),
		gauge("bridge_callers", "Callers that are remembered.", func() float64 { return float64(s.Callers()) }))
	if s.SharedUp != nil {
		m.shared = prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bridge_shared_total", Help: "Commands to the store that replicas share, by purpose and outcome: ok, error, or down where none was sent.",
		}, []string{"purpose", "outcome"})
		m.registry.MustRegister(m.shared, gauge("bridge_shared_up", "Whether the store that replicas share is reached (1) or this replica goes on alone (0).", flag(s.SharedUp)))
	}
	return m
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

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// Handler serves the figures.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts a served request.
func (m *Metrics) Request(endpoint string, status int, took time.Duration) {
	m.requests.WithLabelValues(endpoint, strconv.Itoa(status)).Observe(took.Seconds())
}

// Upstream counts a request to the site.
func (m *Metrics) Upstream(purpose, outcome string, took time.Duration) {
	m.upstream.WithLabelValues(purpose, outcome).Observe(took.Seconds())
}

// Lookup counts a look-up of a caller's tools.
func (m *Metrics) Lookup(outcome string) { m.lookups.WithLabelValues(outcome).Inc() }

// Violation counts arguments or a result that broke a schema.
func (m *Metrics) Violation(kind string) { m.violations.WithLabelValues(kind).Inc() }

// Refused counts a refused request.
func (m *Metrics) Refused(kind string) { m.refusals.WithLabelValues(kind).Inc() }

// Steps counts the work of checking a value.
func (m *Metrics) Steps(n int) { m.steps.Add(float64(n)) }

// Shared counts a command to the store that replicas share.
func (m *Metrics) Shared(purpose, outcome string) { m.shared.WithLabelValues(purpose, outcome).Inc() }
