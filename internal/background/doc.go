// Package background runs the work that a server does beside its requests: loops that must not end,
// and tasks that are repeated.
//
// A [Group] owns them. A loop that panics or ends by itself is started again, with a back-off. The
// waits of a repeated task are random, so that many instances do not work in step, and its failures
// are logged when they begin, change and end, not each one between. All of them stop together.
//
// A [Scheduler] is where a Group takes time and goroutines from: the Go runtime, or a simulation.
//
// A loop is never ended by force: [Group.Wait] waits for one that ignores its context.
//
//	g := background.NewGroup(ctx, log, func(loop string) { panics.WithLabelValues(loop).Inc() })
//	g.Repeat(background.Task{Name: "sweep", Every: time.Minute, Do: store.Sweep})
//	g.Go("watch", store.Watch)
//	…
//	g.Cancel()
//	g.Wait()
package background
