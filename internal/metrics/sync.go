package metrics

import "time"

// The commands that the syncer sends, as they stand on the label.
const (
	CommandFlush   = "flush"
	CommandLoad    = "load"
	CommandResolve = "resolve"
)

// The outcomes of writing one key, as they stand on the label.
const (
	WriteApplied  = "applied"
	WriteFallback = "fallback"
	WriteConflict = "conflict"
	WriteUnknown  = "unknown"
	WriteRejected = "rejected"
)

// expectSync makes the syncer's series begin at 0, so that increase() sees the
// first of each.
func (m *Metrics) expectSync() {
	for _, c := range []string{CommandFlush, CommandLoad, CommandResolve} {
		m.commands.WithLabelValues(c)
	}
	for _, o := range []string{WriteApplied, WriteFallback, WriteConflict, WriteUnknown, WriteRejected} {
		m.writes.WithLabelValues(o)
	}
}

// SyncCommand counts one command to the database, for one of the Command
// constants.
func (m *Metrics) SyncCommand(command string) {
	m.commands.WithLabelValues(known(command, CommandFlush, CommandLoad, CommandResolve)).Inc()
}

// SyncBulk counts one bulk of writes: how many keys, and how long it took.
func (m *Metrics) SyncBulk(keys int, took time.Duration) {
	m.bulkSize.Observe(float64(keys))
	m.bulkDuration.Observe(took.Seconds())
}

// SyncWrites counts n keys whose write had that outcome, one of the Write
// constants.
func (m *Metrics) SyncWrites(outcome string, n int) {
	outcome = known(outcome, WriteApplied, WriteFallback, WriteConflict, WriteUnknown, WriteRejected)
	m.writes.WithLabelValues(outcome).Add(float64(n))
}

// SyncDrift counts a document that holds less than we had written to it.
func (m *Metrics) SyncDrift() { m.drift.Inc() }

// SyncLeftover says how many counts the final flush could not write.
func (m *Metrics) SyncLeftover(counts uint64) { m.leftover.Set(float64(counts)) }

// known returns v if it is one of the values, and Other if not.
func known(v string, values ...string) string {
	for _, k := range values {
		if v == k {
			return v
		}
	}
	return Other
}
