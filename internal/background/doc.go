// Package background runs the work that a server does beside its requests: loops
// that must not end, and tasks that are repeated.
//
// A [Group] owns them. It starts a loop again that panicked or ended by itself,
// with a back-off; it draws the waits of a repeated task so that many instances do
// not work in step; it logs when a task begins to fail and when it works again,
// not each failure between; and it stops them all together.
//
// It never ends a loop by force: what does not obey its context is waited for as
// long as the caller of [Group.Wait] wants.
//
//	g := background.NewGroup(ctx, log, func(loop string) { panics.WithLabelValues(loop).Inc() })
//	g.Repeat(background.Task{Name: "sweep", Every: time.Minute, Do: store.Sweep})
//	g.Go("watch", store.Watch)
//	…
//	g.Cancel()
//	err := g.Wait(deadline)
package background
