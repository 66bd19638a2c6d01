package metrics

import "time"

// The commands of the syncer, as values of the label command.
const (
	CommandWrite = "write" // a bulk of writes
	CommandRead  = "read"  // reads documents
	CommandClock = "clock" // reads the clock
	CommandBeat  = "beat"  // writes the heartbeat of the instance
)

var syncCommands = [...]string{CommandWrite, CommandRead, CommandClock, CommandBeat, Other}

// expectSync makes the syncer's series begin at 0, so increase() sees the first event of each.
func (m *Metrics) expectSync() {
	for _, c := range syncCommands[:len(syncCommands)-1] {
		m.commands.WithLabelValues(c)
		m.commandFails.WithLabelValues(c)
	}
}

// SyncCall counts one command to the database: one of the Command constants, the number of keys in
// it, its duration, and whether it failed as a whole.
func (m *Metrics) SyncCall(command string, keys int, took time.Duration, failed bool) {
	command = syncCommands[indexOf(syncCommands[:], command)]
	m.commands.WithLabelValues(command).Inc()
	if failed {
		m.commandFails.WithLabelValues(command).Inc()
	}
	if command == CommandWrite || command == CommandRead {
		m.bulkSize.WithLabelValues(command).Observe(float64(keys))
		m.bulkDuration.WithLabelValues(command).Observe(took.Seconds())
	}
}

// SyncLeftover sets the number of counts that the final flush could not write.
func (m *Metrics) SyncLeftover(counts int64) { m.leftover.Set(float64(counts)) }

// Sync is the state of the syncer, with totals since the start.
type Sync struct {
	GAge        time.Duration // age of the oldest g of the active keys
	Late        time.Duration // how long the first exchange is overdue
	Unconfirmed time.Duration // age of the oldest write that is not confirmed
	Degraded    time.Duration // how long the store has failed; 0: it works
	Stalled     bool          // limits follow their on_outage
	// Keys that wait for an exchange, and the number of them that are due.
	Waiting, Due int
	Instances    int // live instances including this one; 0: unknown

	// Writes of keys, by result. Applied does not include Fallback.
	Applied, Fallback, Conflicts, Unknown, Rejected int64
	Foreign                                         int64 // documents that are malformed, completely or partly
	Drift                                           int64 // documents that contain less than was written
	Clones                                          int64 // detected copies of this process
	Panics                                          int64
}

// WatchSync exports the result of read at each scrape.
func (m *Metrics) WatchSync(read func() Sync) {
	m.pull.watch("sync", func(emit emit) {
		now := read()
		emit(gAgeInfo, now.GAge.Seconds())
		emit(lateInfo, now.Late.Seconds())
		emit(degradedInfo, now.Degraded.Seconds())
		emit(unconfirmedInfo, now.Unconfirmed.Seconds())
		emit(outageInfo, truth(now.Stalled))
		emit(dirtyInfo, float64(now.Waiting))
		emit(dueInfo, float64(now.Due))
		emit(instancesInfo, float64(now.Instances))
		emit(writesInfo, float64(now.Applied), "applied")
		emit(writesInfo, float64(now.Fallback), "fallback")
		emit(writesInfo, float64(now.Conflicts), "conflict")
		emit(writesInfo, float64(now.Unknown), "unknown")
		emit(writesInfo, float64(now.Rejected), "rejected")
		emit(foreignInfo, float64(now.Foreign))
		emit(driftInfo, float64(now.Drift))
		emit(clonesInfo, float64(now.Clones))
		emit(syncPanicsInfo, float64(now.Panics))
	})
}

// WatchClock exports how far the wall clock and the store's clock are ahead of process time.
func (m *Metrics) WatchClock(ahead func() (wall, store time.Duration)) {
	m.pull.watch("clock", func(emit emit) {
		wall, store := ahead()
		emit(clockOffsetInfo, wall.Seconds(), "wall")
		emit(clockOffsetInfo, store.Seconds(), "store")
	})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
