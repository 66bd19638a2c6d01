package metrics

import (
	"time"

	"oauth-server/internal/syncer"
)

// expectSync makes the syncer's series begin at 0, so increase() sees the first event of each.
func (m *Metrics) expectSync() {
	for _, op := range syncer.Ops() {
		m.commands.WithLabelValues(string(op))
		m.commandFails.WithLabelValues(string(op))
	}
}

// Call implements [syncer.Observer]: it counts one command to the database.
func (m *Metrics) Call(op syncer.Op, keys int, took time.Duration, err error) {
	command := string(op)
	m.commands.WithLabelValues(command).Inc()
	if err != nil {
		m.commandFails.WithLabelValues(command).Inc()
	}
	if op == syncer.OpWrite || op == syncer.OpRead {
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
