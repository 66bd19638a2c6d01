package metrics

import "time"

// The commands that the syncer sends, as values of the label command.
const (
	CommandWrite = "write" // a bulk of writes
	CommandRead  = "read"  // documents are read
	CommandClock = "clock" // the clock is read
	CommandBeat  = "beat"  // the heartbeat of the instance
)

var syncCommands = [...]string{CommandWrite, CommandRead, CommandClock, CommandBeat, Other}

// expectSync makes the syncer's series begin at 0, so that increase() sees the
// first of each.
func (m *Metrics) expectSync() {
	for _, c := range syncCommands[:len(syncCommands)-1] {
		m.commands.WithLabelValues(c)
		m.commandFails.WithLabelValues(c)
	}
}

// SyncCall counts one command to the database: one of the Command constants, the number
// of keys in it, its duration, and whether it failed as a whole.
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

// SyncLeftover sets how many counts the final flush could not write.
func (m *Metrics) SyncLeftover(counts int64) { m.leftover.Set(float64(counts)) }

// Sync is the state of the syncer, and its totals since the start.
type Sync struct {
	GAge        time.Duration // of the oldest g among the active keys
	Late        time.Duration // how long the first exchange has been due
	Unconfirmed time.Duration // age of the oldest write that is not known to be applied
	Degraded    time.Duration // how long the store has failed; 0 if it does not
	Stalled     bool          // limits are decided by their on_outage
	// Keys that wait for an exchange, and those of them that are due.
	Waiting, Due int
	Instances    int // alive, this one included; 0 if not known

	// Writes of keys, by what came of them. Applied does not include Fallback.
	Applied, Fallback, Conflicts, Unknown, Rejected int64
	Foreign                                         int64 // documents that are malformed, as a whole or in part
	Drift                                           int64 // documents that hold less than was written
	Clones                                          int64 // copies of this process that were noticed
	Panics                                          int64
}

// WatchSync exports what read returns at each scrape.
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

// WatchClock exports by how much the wall clock and the store's clock are ahead of process
// time.
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
