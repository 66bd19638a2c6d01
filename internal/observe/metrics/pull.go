package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit/counting"
)

// emit exports the value of a metric with its labels.
type emit func(i Info, value float64, labels ...string)

// pullCollector reads values at each scrape. A metric without a source is not exported.
type pullCollector struct {
	mu      sync.RWMutex
	sources map[string]func(emit)
	descs   map[string]*prometheus.Desc
}

// newPullCollector returns a collector for the metrics of the catalog that have no collector of
// their own.
func newPullCollector(own map[string]bool) *pullCollector {
	p := &pullCollector{sources: map[string]func(emit){}, descs: map[string]*prometheus.Desc{}}
	for _, i := range Catalog() {
		if !own[i.Name] {
			p.descs[i.Name] = prometheus.NewDesc(i.Name, i.Help, i.Labels, nil)
		}
	}
	return p
}

// watch adds a source. read emits some of the pulled metrics. A second call with the same name
// replaces the first.
func (p *pullCollector) watch(source string, read func(emit)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sources[source] = read
}

// Describe implements prometheus.Collector.
func (p *pullCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range p.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *pullCollector) Collect(ch chan<- prometheus.Metric) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, read := range p.sources {
		read(func(i Info, value float64, labels ...string) {
			kind := prometheus.GaugeValue
			if i.Kind == Counter {
				kind = prometheus.CounterValue
			}
			ch <- prometheus.MustNewConstMetric(p.descs[i.Name], kind, value, labels...)
		})
	}
}

// WatchMemory exports the result of read at each scrape.
func (m *Metrics) WatchMemory(read func() counting.Stats) {
	m.pull.watch("memory", func(emit emit) {
		now := read()
		emit(countersInfo, float64(now.Keys))
		emit(countersMaxInfo, float64(now.MaxKeys))
		emit(evictionsInfo, float64(now.Evicted))
		emit(overflowInfo, float64(now.Overflowed))
		emit(expiredInfo, float64(now.Expired))
	})
}

// WatchBans exports the result of read at each scrape.
func (m *Metrics) WatchBans(read func() bans.Stats) {
	m.pull.watch("bans", func(emit emit) {
		now := read()
		emit(bannedInfo, float64(now.Active))
		emit(longestBanInfo, now.Longest.Seconds())
		emit(bansWaitingInfo, float64(now.Waiting))
	})
}

// Snapshot is a configuration that is refreshed from the store.
type Snapshot struct {
	Revision  int64
	Refreshed time.Time // when it was last known to be current
}

// Config is the state of the configuration.
type Config struct {
	Clients, Policies Snapshot
	Unreadable        int    // clients that are not served
	Unregistered      int    // clients with a policy in the file
	Refused           bool   // the newest file is not in use
	RestartNeeded     int    // fields of the file
	Limits            string // digest of the limits in use: hexadecimal digits
}

// WatchConfig exports the result of read at each scrape.
func (m *Metrics) WatchConfig(read func() Config) {
	m.pull.watch("configuration", func(emit emit) {
		now := read()
		for name, s := range map[string]Snapshot{"clients": now.Clients, "policies": now.Policies} {
			emit(configRevisionInfo, float64(s.Revision), name)
			emit(configAgeInfo, m.now().Sub(s.Refreshed).Seconds(), name)
		}
		emit(unreadableInfo, float64(now.Unreadable))
		emit(unregisteredInfo, float64(now.Unregistered))
		emit(fileRefusedInfo, truth(now.Refused))
		emit(fileRestartInfo, float64(now.RestartNeeded))
		// A number of 48 bits is exact as a float64.
		hash, _ := strconv.ParseUint(now.Limits[:min(12, len(now.Limits))], 16, 48)
		emit(fileLimitsInfo, float64(hash))
	})
}
