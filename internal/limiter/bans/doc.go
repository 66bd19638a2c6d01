// Package bans bans clients, and users of clients, that continue after they were denied. The policy
// of the client sets the rule ([ratelimit.Ban]). Each further ban is longer, until the last one is
// forgotten.
//
// [Bans.Decide] decides a request in memory, without a lock. [Bans.Denied] counts denied requests
// like requests under a limit, so all instances count together. The instance that reaches the bound
// bans at once, and stores the ban in the background. [Bans.Refresh] makes all instances follow the
// store, within two seconds. If two instances ban a key at the same time, one stores its ban and the
// other adopts it.
//
// Bans in dry-run are kept per instance. They are not stored and deny no request. Without a store,
// enforced bans apply to one process too.
//
// The package never does I/O for a request. Callers must pass only requests of proven users.
//
//	b, err := bans.New(ctx, bans.Options{Store: store, Counters: counters, Clock: clock.Now})
//	if d, banned := b.Decide(now, key, effective); banned { … }
//	d := counters.Take(now, key, effective, 1)
//	if d.ThroughLimit() { b.Denied(now, key, effective) }
package bans
