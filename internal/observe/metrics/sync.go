package metrics

import (
	"time"

	"oauth-server/internal/syncer"
)

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

// WatchSync exports the result of read at each scrape.
func (m *Metrics) WatchSync(read func() syncer.Stats) {
	m.pull.watch("sync", func(emit emit) {
		now := read()
		emit(gAgeInfo, now.Age.Seconds())
		emit(lateInfo, now.Late.Seconds())
		emit(degradedInfo, now.DegradedFor.Seconds())
		emit(unconfirmedInfo, now.Unconfirmed.Seconds())
		emit(outageInfo, truth(now.Stalled))
		emit(dirtyInfo, float64(now.Waiting))
		emit(dueInfo, float64(now.Due))
		emit(instancesInfo, float64(now.Instances))
		emit(writesInfo, float64(now.Applied-now.Fallback), "applied")
		emit(writesInfo, float64(now.Fallback), "fallback")
		emit(writesInfo, float64(now.Conflicts), "conflict")
		emit(writesInfo, float64(now.Unknown), "unknown")
		emit(writesInfo, float64(now.Rejected), "rejected")
		emit(foreignInfo, float64(now.Foreign))
		emit(driftInfo, float64(now.Drift))
		emit(clonesInfo, float64(now.Clones))
		emit(syncPanicsInfo, float64(now.Panics))
		emit(clockOffsetInfo, now.Clock.Wall.Seconds(), "wall")
		emit(clockOffsetInfo, now.Clock.Store.Seconds(), "store")
	})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
