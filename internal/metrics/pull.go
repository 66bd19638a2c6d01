package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// emit shows one value with the labels of its metric.
type emit func(value float64, labels ...string)

// pullCollector asks for values at each scrape. A metric that nobody gave a
// function for is not shown.
type pullCollector struct {
	mu      sync.RWMutex
	sources map[string]pullSource
}

type pullSource struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(emit)
}

// pulled are the metrics that a pullCollector may show.
var pulled = []Info{
	countersInfo, countersMaxInfo, evictionsInfo, overflowInfo, expiredInfo,
	gAgeInfo, lateInfo, degradedInfo, dirtyInfo, dueInfo, instancesInfo,
	writesInfo, foreignInfo, driftInfo, syncPanicsInfo, clockOffsetInfo, configRevisionInfo, configAgeInfo, buildInfo,
}

func newPullCollector() *pullCollector {
	return &pullCollector{sources: make(map[string]pullSource)}
}

// watch shows what read emits; a second call for the same metric replaces the
// first.
func (p *pullCollector) watch(i Info, read func(emit)) {
	kind := prometheus.GaugeValue
	if i.Kind == Counter {
		kind = prometheus.CounterValue
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sources[i.Name] = pullSource{desc: i.desc(), kind: kind, read: read}
}

// Describe implements prometheus.Collector.
func (p *pullCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, i := range pulled {
		ch <- i.desc()
	}
}

// Collect implements prometheus.Collector.
func (p *pullCollector) Collect(ch chan<- prometheus.Metric) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, s := range p.sources {
		s.read(func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(s.desc, s.kind, value, labels...)
		})
	}
}

// Memory is how full the limiter's memory is.
type Memory struct {
	Counters, MaxCounters int64
	// Since the start: counters that made room for others, decisions on
	// shared counters, and counts that expired before they were written.
	Evictions, Overflows, Expired int64
}

// WatchMemory shows the counters in memory.
func (m *Metrics) WatchMemory(read func() Memory) {
	m.pull.watch(countersInfo, func(emit emit) { emit(float64(read().Counters)) })
	m.pull.watch(countersMaxInfo, func(emit emit) { emit(float64(read().MaxCounters)) })
	m.pull.watch(evictionsInfo, func(emit emit) { emit(float64(read().Evictions)) })
	m.pull.watch(overflowInfo, func(emit emit) { emit(float64(read().Overflows)) })
	m.pull.watch(expiredInfo, func(emit emit) { emit(float64(read().Expired)) })
}

// Config is one configuration that is read from the store again and again.
type Config struct {
	Name      string // "clients" or "policies"
	Revision  int64
	Refreshed time.Time // when it was last known to be the newest
}

// WatchConfigs shows which configuration is in use and how old it is.
func (m *Metrics) WatchConfigs(read func() []Config) {
	m.pull.watch(configRevisionInfo, func(emit emit) {
		for _, c := range read() {
			emit(float64(c.Revision), c.Name)
		}
	})
	m.pull.watch(configAgeInfo, func(emit emit) {
		for _, c := range read() {
			emit(m.now().Sub(c.Refreshed).Seconds(), c.Name)
		}
	})
}
