package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// emit exports the value of a metric with its labels.
type emit func(i Info, value float64, labels ...string)

// pullCollector reads values at each scrape. A metric without a source is not exported.
type pullCollector struct {
	mu      sync.RWMutex
	sources map[string]func(emit)
	descs   map[string]*prometheus.Desc
}

// pulled are the metrics that a pullCollector may export.
var pulled = []Info{
	decisionsInfo, outageDecisionsInfo, softWarningsInfo, waitingInfo, issuedInfo, wastedInfo, bansInfo, bannedInfo, longestBanInfo, bansWaitingInfo, usageInfo, limitInfo, limitWindowInfo,
	defaultLimitInfo, defaultWindowInfo, trustedInfo, modeInfo, labelledInfo,
	countersInfo, countersMaxInfo, evictionsInfo, overflowInfo, expiredInfo,
	gAgeInfo, lateInfo, unconfirmedInfo, degradedInfo, outageInfo, dirtyInfo, dueInfo, instancesInfo,
	writesInfo, foreignInfo, driftInfo, clonesInfo, syncPanicsInfo, clockOffsetInfo,
	overloadRequestsInfo, overloadModeInfo, overloadWaitInfo, overloadRefusedInfo, overloadUpToInfo, overloadUselessInfo, overloadInFlightInfo,
	laneLimitInfo, laneInFlightInfo, laneWaitingInfo, laneRequestsInfo,
	gatewayRequestsInfo, gatewayUnknownInfo, gatewayLateInfo, gatewayDefectsInfo, gatewayUnderWayInfo, gatewaySubjectsInfo,
	gatewayReadsInfo, gatewayWritesInfo, gatewayWritesWaitingInfo,
	configRevisionInfo, configAgeInfo, unreadableInfo, unregisteredInfo, fileRefusedInfo, fileRestartInfo, fileLimitsInfo, buildInfo,
	connectionsInfo, connectionsMaxInfo, streamsInfo, connectionsExcessInfo,
}

func newPullCollector() *pullCollector {
	p := &pullCollector{sources: map[string]func(emit){}, descs: map[string]*prometheus.Desc{}}
	for _, i := range pulled {
		p.descs[i.Name] = i.desc()
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

// Memory is the state of the limiter's memory.
type Memory struct {
	Counters, MaxCounters int64
	// Since the start: counters evicted for others, decisions on shared counters, and counts that
	// expired before they were written.
	Evictions, Overflows, Expired int64
}

// WatchMemory exports the result of read at each scrape.
func (m *Metrics) WatchMemory(read func() Memory) {
	m.pull.watch("memory", func(emit emit) {
		now := read()
		emit(countersInfo, float64(now.Counters))
		emit(countersMaxInfo, float64(now.MaxCounters))
		emit(evictionsInfo, float64(now.Evictions))
		emit(overflowInfo, float64(now.Overflows))
		emit(expiredInfo, float64(now.Expired))
	})
}

// Bans are the bans in force.
type Bans struct {
	Active  int           // banned clients and users that the policies in force keep out
	Longest time.Duration // the longest of these bans, from start to end
	Waiting int           // bans that are not stored yet
}

// WatchBans exports the result of read at each scrape.
func (m *Metrics) WatchBans(read func() Bans) {
	m.pull.watch("bans", func(emit emit) {
		now := read()
		emit(bannedInfo, float64(now.Active))
		emit(longestBanInfo, now.Longest.Seconds())
		emit(bansWaitingInfo, float64(now.Waiting))
	})
}

// Config is one configuration that is refreshed from the store.
type Config struct {
	Name      string // "clients" or "policies"
	Revision  int64
	Refreshed time.Time // when it was last known to be current
}

// WatchConfigs exports the revision and age of the configurations that read returns at each scrape.
func (m *Metrics) WatchConfigs(read func() []Config) {
	m.pull.watch("configs", func(emit emit) {
		for _, c := range read() {
			emit(configRevisionInfo, float64(c.Revision), c.Name)
			emit(configAgeInfo, m.now().Sub(c.Refreshed).Seconds(), c.Name)
		}
	})
}

// ConfigFile is the state of the configuration file.
type ConfigFile struct {
	Refused       bool
	RestartNeeded int    // number of fields
	Limits        string // digest of the limits in use: hexadecimal digits
}

// WatchConfigFile exports the result of read at each scrape.
func (m *Metrics) WatchConfigFile(read func() ConfigFile) {
	m.pull.watch("configuration file", func(emit emit) {
		now := read()
		emit(fileRefusedInfo, truth(now.Refused))
		emit(fileRestartInfo, float64(now.RestartNeeded))
		// A number of 48 bits is exact as a float64.
		hash, _ := strconv.ParseUint(now.Limits[:min(12, len(now.Limits))], 16, 48)
		emit(fileLimitsInfo, float64(hash))
	})
}

// WatchUnregisteredClients exports the result of read at each scrape.
func (m *Metrics) WatchUnregisteredClients(read func() int) {
	m.pull.watch("unregistered clients", func(emit emit) { emit(unregisteredInfo, float64(read())) })
}

// WatchUnreadableClients exports the result of read at each scrape.
func (m *Metrics) WatchUnreadableClients(read func() int) {
	m.pull.watch("unreadable clients", func(emit emit) { emit(unreadableInfo, float64(read())) })
}
