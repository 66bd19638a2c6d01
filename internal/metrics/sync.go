package metrics

import "time"

// The commands that the syncer sends, as they stand on the label.
const (
	CommandApply = "apply" // a bulk of writes
	CommandLoad  = "load"  // documents are read
	CommandClock = "clock" // the clock is read
	CommandBeat  = "beat"  // the instance says that it is alive
)

var syncCommands = [...]string{CommandApply, CommandLoad, CommandClock, CommandBeat, Other}

// expectSync makes the syncer's series begin at 0, so that increase() sees the
// first of each.
func (m *Metrics) expectSync() {
	for _, c := range syncCommands[:len(syncCommands)-1] {
		m.commands.WithLabelValues(c)
		m.commandFails.WithLabelValues(c)
	}
}

// SyncCall counts one command to the database: one of the Command constants, how
// many keys it was about, how long it took, and whether it failed as a whole.
func (m *Metrics) SyncCall(command string, keys int, took time.Duration, failed bool) {
	command = syncCommands[indexOf(syncCommands[:], command)]
	m.commands.WithLabelValues(command).Inc()
	if failed {
		m.commandFails.WithLabelValues(command).Inc()
	}
	if command == CommandApply || command == CommandLoad {
		m.bulkSize.WithLabelValues(command).Observe(float64(keys))
		m.bulkDuration.WithLabelValues(command).Observe(took.Seconds())
	}
}

// SyncLeftover says how many counts the final flush could not write.
func (m *Metrics) SyncLeftover(counts int64) { m.leftover.Set(float64(counts)) }

// Sync is where the syncer stands, and what it has done since it began.
type Sync struct {
	GAge     time.Duration // of the oldest g among the active keys
	Late     time.Duration // how long the first write has been due
	Degraded time.Duration // how long the store has not answered; 0 if it does
	// Keys with counts not yet confirmed written, and those of them that
	// should be written now.
	Dirty, Due int
	Instances  int // alive, this one included; 0 if not known

	// Writes of keys, by what came of them. Applied does not include Fallback.
	Applied, Fallback, Conflicts, Unknown, Rejected int64
	Foreign                                         int64 // documents that make no sense
	Drift                                           int64 // documents that hold less than was written
	Panics                                          int64
}

// WatchSync shows where the syncer stands.
func (m *Metrics) WatchSync(read func() Sync) {
	m.pull.watch("sync", func(emit emit) {
		now := read()
		emit(gAgeInfo, now.GAge.Seconds())
		emit(lateInfo, now.Late.Seconds())
		emit(degradedInfo, now.Degraded.Seconds())
		emit(dirtyInfo, float64(now.Dirty))
		emit(dueInfo, float64(now.Due))
		emit(instancesInfo, float64(now.Instances))
		emit(writesInfo, float64(now.Applied), "applied")
		emit(writesInfo, float64(now.Fallback), "fallback")
		emit(writesInfo, float64(now.Conflicts), "conflict")
		emit(writesInfo, float64(now.Unknown), "unknown")
		emit(writesInfo, float64(now.Rejected), "rejected")
		emit(foreignInfo, float64(now.Foreign))
		emit(driftInfo, float64(now.Drift))
		emit(syncPanicsInfo, float64(now.Panics))
	})
}

// WatchClock shows the database's clock minus ours.
func (m *Metrics) WatchClock(offset func() time.Duration) {
	m.pull.watch("clock", func(emit emit) { emit(clockOffsetInfo, offset().Seconds()) })
}
