// Package background runs the work of a server outside its requests: loops that must not end, and
// repeated tasks.
//
// A [Group] runs them. It restarts a loop that panics or returns, with a back-off. The waits of a
// repeated task are random, so many instances do not work in step. Failures of a task are logged
// when they begin, change and end, not every time. All loops stop together.
//
// A loop is never ended by force: [Group.Wait] waits for a loop that ignores its context.
//
//	g := background.NewGroup(ctx, log, func(loop string) { panics.WithLabelValues(loop).Inc() })
//	g.Repeat(background.Task{Name: "sweep", Every: time.Minute, Do: store.Sweep})
//	g.Go("watch", store.Watch)
//	…
//	g.Cancel()
//	g.Wait()
package background
