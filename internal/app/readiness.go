package app

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer/clock"
)

// staleAfter is how long the store may be silent before /readyz reports it. The clients are
// refreshed every [changesEvery], and an answer may take several seconds.
const staleAfter = 8 * time.Second

// readiness holds the sources of /readyz.
type readiness struct {
	clients  *clientcfg.Source
	policies *clientcfg.PolicySource
	sync     *syncStats
	stopping atomic.Bool

	unregistered *misfits
	file         *configFile
	shedder      *shedWatch
	storeQueue   *storequeue.Queue
}

// report returns the answer of /readyz. It names clients only for operators. It does no I/O and
// uses the results of the background loops, so probes cost almost nothing and do not hang during an
// outage. While the store is unavailable, client_credentials tokens are still issued and limits
// still decide, so the server is degraded, not down, and the status code stays 200. An overloaded
// server is ready, see [uselessAfter].
func (r *readiness) report(forOperators bool) httpapi.Readiness {
	policies, sync := r.policies.Status(), r.sync.get()
	calls := r.storeQueue.Stats()
	c := condition{
		stopping: r.stopping.Load(),
		refused:  policies.Err != nil,
		unshared: sync.DegradedFor,
		outage:   sync.Stalled,
		clock:    sync.Clock,

		unreadable:   r.clients.Directory().Unreadable(),
		unregistered: r.unregistered.list(),
		file:         r.file.status(),
		shedding:     r.shedder.look(time.Now()),
		beforeStore:  beforeStore(&calls),
	}
	if silent := time.Since(r.clients.CheckedAt()); silent > staleAfter {
		c.silent = silent
	}
	return c.readiness(forOperators)
}

// condition holds everything that /readyz reports.
type condition struct {
	stopping bool
	silent   time.Duration // since the last answer of the store; 0: it answers
	refused  bool          // some of the stored limits are invalid or unreadable
	unshared time.Duration // since exchanges began to fail; 0: they succeed
	outage   bool          // limits follow their on_outage
	clock    clock.State

	unreadable   map[string]error // clients that are not served, by ID
	unregistered []string         // clients with a configured policy, sorted
	file         fileStatus
	shedding     shedding
	beforeStore  string // calls that are refused there; empty: none
}

// readiness returns the answer. Problems of single clients, problems of the configuration file, and
// shed requests leave the server ready. The texts contain no hosts and no errors, and name clients
// only for operators.
func (c *condition) readiness(forOperators bool) httpapi.Readiness {
	if c.stopping {
		return httpapi.Readiness{Status: httpapi.Down, Checks: map[string]string{"server": "stopping"}}
	}
	checks := map[string]string{}
	if c.silent > 0 {
		checks["store"] = "not answering for " + inSeconds(c.silent)
	}
	if c.refused {
		checks["limits"] = "some in the store cannot be used; the last good ones stay in force"
	}
	if c.unshared > 0 {
		checks["counts"] = "sharing has been failing for " + inSeconds(c.unshared) + "; no count is lost"
	}
	if c.outage {
		checks["outage"] = "limits follow their on_outage"
	}
	if text := describeClocks(c.clock); text != "" {
		checks["clock"] = text
	}
	status := httpapi.Degraded
	if len(checks) == 0 {
		status = httpapi.Ready
	}
	if text := c.shedding.describe(); text != "" {
		checks["overload"] = text
	}
	if c.beforeStore != "" {
		checks["overload_store"] = c.beforeStore
	}
	if c.shedding.down {
		status = httpapi.Down
	}
	shown := func(clients []string) string { return strconv.Itoa(len(clients)) }
	if forOperators {
		shown = nameSome
	}
	if len(c.unreadable) > 0 {
		checks["clients"] = "unreadable and not served: " + shown(slices.Sorted(maps.Keys(c.unreadable)))
	}
	if len(c.unregistered) > 0 {
		checks["configuration"] = "has a policy for unregistered clients: " + shown(c.unregistered)
	}
	switch {
	case c.file.refused != nil:
		checks["configuration_file"] = "the changed file is refused; the last good one stays in use"
	case len(c.file.restart) > 0:
		checks["configuration_file"] = "has changes that need a restart: " + strings.Join(c.file.restart, ", ")
	}
	if len(checks) == 0 {
		checks = nil
	}
	return httpapi.Readiness{Status: status, Checks: checks}
}

// namedClients is the maximum number of clients in a text.
const namedClients = 5

// nameSome names the first clients and the number of others.
func nameSome(ids []string) string {
	named := slices.Clone(ids[:min(len(ids), namedClients)])
	for i, id := range named {
		named[i] = strconv.QuoteToASCII(id[:min(len(id), clientcfg.MaxIDLength)])
	}
	text := strings.Join(named, ", ")
	if more := len(ids) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// describeClocks returns which clock disagrees and by how much, or an empty string if all agree.
func describeClocks(st clock.State) string {
	switch st.Alone {
	case clock.NoClock:
		return ""
	case clock.Wall:
		return "this machine's clock is " + ahead(st.Wall) + " the others: tokens use it, counts do not"
	case clock.Store:
		return "the store's clock is " + ahead(st.Store) + " the others: counts do not use it"
	case clock.Process:
		return "process time differs from both clocks: the store's is " + ahead(st.Store) + " it, and counts use that"
	default:
		return fmt.Sprintf("no two clocks agree: this machine's is %s process time, the store's %s it", ahead(st.Wall), ahead(st.Store))
	}
}

// ahead returns how far a clock is ahead of or behind another one.
func ahead(d time.Duration) string {
	if d < 0 {
		return inSeconds(-d) + " behind"
	}
	return inSeconds(d) + " ahead of"
}

// inSeconds formats a duration in whole seconds, at least one.
func inSeconds(d time.Duration) string { return max(d.Round(time.Second), time.Second).String() }

// These durations say when an overloaded server is down. A server that sheds is still ready:
// otherwise its load would go to other instances, which are probably as loaded and would be
// overwhelmed. The server is down after it has refused nearly everything for uselessAfter, which is
// longer than a burst. It is ready again when that has ended for usefulAfter. In that time, a
// balancer that probes every five seconds and needs two failures, as in deploy/kubernetes, takes it
// out. With shorter times the state would flap, because an instance without requests is idle at
// once.
const (
	uselessAfter = 10 * time.Second
	usefulAfter  = 10 * time.Second
)

// shedding is the state of overload control for /readyz.
type shedding struct {
	lasted time.Duration         // since it began; 0: nothing is refused
	upTo   ratelimit.Criticality // the highest criticality that is partly refused
	down   bool                  // sending requests here is useless
}

// describe returns the line for /readyz, or an empty string if nothing is refused.
func (s *shedding) describe() string {
	switch {
	case s.down && s.lasted > 0:
		return "refusing nearly all requests, including the most critical ones; overloaded for " + inSeconds(s.lasted)
	case s.down:
		return "refused nearly all requests until a moment ago, including the most critical ones"
	case s.lasted == 0:
		return ""
	case s.upTo == ratelimit.CriticalityUnset:
		return "refusing the least critical requests for " + inSeconds(s.lasted)
	}
	return "refusing the least critical requests for " + inSeconds(s.lasted) + ", up to " + s.upTo.String()
}

// beforeStore returns the line for /readyz about calls that are refused before the store, or an
// empty string. The instance stays ready, because it answers most requests that need no store, and
// serves the most critical calls first.
func beforeStore(st *storequeue.Stats) string {
	if st.Mode != ratelimit.Enforce || st.Refusing == 0 || st.UpTo == ratelimit.CriticalityUnset {
		return ""
	}
	return "refusing requests that wait too long for the store, for " + inSeconds(st.Refusing) + ", up to " + st.UpTo.String()
}

// shedWatch evaluates the state of the shedder at each call, so as often as a balancer asks.
type shedWatch struct {
	stats func() overload.Stats

	mu      sync.Mutex
	down    bool
	useless time.Time // when refusing was last useless
}

func (w *shedWatch) look(now time.Time) shedding {
	st := w.stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	if st.Mode != ratelimit.Enforce { // nothing is refused in other modes
		w.down = false
		return shedding{}
	}
	if st.Useless > 0 {
		w.useless = now
	}
	switch {
	case st.Useless >= uselessAfter:
		w.down = true
	case now.Sub(w.useless) >= usefulAfter:
		w.down = false
	}
	return shedding{lasted: st.Overloaded, upTo: st.UpTo, down: w.down}
}
