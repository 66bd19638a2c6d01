package metrics

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure [New].
type Options struct {
	// MaxClients is the maximum number of clients with a label.
	MaxClients int
	// Build is exported as oauth_build_info.
	Build Build
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Build describes a build of the server.
type Build struct {
	Version, Revision, GoVersion string
}

// Metrics holds the metrics of the server. All methods are safe for concurrent use.
type Metrics struct {
	now     func() time.Time
	clients *clients
	pull    *pullCollector

	policies atomic.Pointer[func() PolicySnapshot] // nil: unknown

	leaseWait  *prometheus.HistogramVec
	delays     *prometheus.HistogramVec
	requests   *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	dbCalls    *prometheus.HistogramVec
	tokens     *prometheus.CounterVec
	gateway    *prometheus.HistogramVec
	upstream   *prometheus.HistogramVec
	store      *prometheus.HistogramVec
	storeFails *prometheus.CounterVec
	panics     *prometheus.CounterVec
	hashes     *prometheus.CounterVec

	commands     *prometheus.CounterVec
	commandFails *prometheus.CounterVec
	bulkSize     *prometheus.HistogramVec
	bulkDuration *prometheus.HistogramVec
	leftover     prometheus.Gauge
}

// New registers the collectors with reg. It fails if one of them is already registered.
func New(reg prometheus.Registerer, o Options) (*Metrics, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &builder{reg: reg, made: map[string]bool{}}
	m := &Metrics{
		now:     o.Now,
		clients: newClients(o.MaxClients),

		leaseWait:  b.histogramVec(leaseWaitInfo, waitBuckets, true),
		delays:     b.histogramVec(delaysInfo, delayBuckets, true),
		requests:   b.histogramVec(requestsInfo, latencyBuckets, true),
		inFlight:   b.gauge(inFlightInfo),
		dbCalls:    b.histogramVec(dbCallsInfo, callBuckets, false),
		tokens:     b.counterVec(tokensInfo),
		gateway:    b.histogramVec(gatewayDurationInfo, latencyBuckets, true),
		upstream:   b.histogramVec(gatewayUpstreamInfo, latencyBuckets, true),
		store:      b.histogramVec(storeInfo, latencyBuckets, true),
		storeFails: b.counterVec(storeErrorsInfo),
		panics:     b.counterVec(panicsInfo),
		hashes:     b.counterVec(hashesInfo),

		commands:     b.counterVec(commandsInfo),
		commandFails: b.counterVec(commandFailsInfo),
		bulkSize:     b.histogramVec(bulkSizeInfo, sizeBuckets, false),
		bulkDuration: b.histogramVec(bulkDurationInfo, latencyBuckets, true),
		leftover:     b.gauge(leftoverInfo),
	}
	m.pull = newPullCollector(b.made)
	b.register(m.pull)
	b.register(collectors.NewGoCollector())
	b.register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if b.err != nil {
		return nil, fmt.Errorf("metrics: %w", b.err)
	}
	m.delays.WithLabelValues() // starts at 0
	m.hashes.WithLabelValues(inProcess)
	m.hashes.WithLabelValues(inServer)
	m.pull.watch("limits", m.emitLimits)
	m.pull.watch("build", func(emit emit) {
		emit(buildInfo, 1, o.Build.Version, o.Build.Revision, o.Build.GoVersion)
	})
	m.expectSync()
	return m, nil
}

// Handler serves the metrics of g in the format that the scraper negotiates, with native histograms
// and exemplars.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Panic counts a panic in the background loop with this name, one of a few.
func (m *Metrics) Panic(loop string) {
	m.panics.WithLabelValues(loop).Inc()
}

// The process that hashed a password, in oauth_password_hashes_total.
const (
	inProcess = "process"
	inServer  = "server"
)

// PasswordHashed counts a password hash, computed in a separate process or in this one.
func (m *Metrics) PasswordHashed(separately bool) {
	place := inServer
	if separately {
		place = inProcess
	}
	m.hashes.WithLabelValues(place).Inc()
}
