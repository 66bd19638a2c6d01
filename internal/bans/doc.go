// Package bans keeps out who goes on after being denied: a client, or a user of one, by the ban of its policy
// ([ratelimit.Ban]). Each further ban is longer, until the last one is forgotten.
//
// A request is decided in memory ([Bans.Decide]), without a lock. Denied requests are counted like requests
// under a limit, so all instances count together ([Bans.Denied]). The instance whose count is reached bans at
// once, and stores the ban in the background; all instances follow what is stored ([Bans.Refresh]), a second
// later at most. Of two instances that ban at once, one stores its ban, and the other takes it over.
//
// In dry-run there are bans too, of each instance for itself, which are not stored and stop nobody.
// Without a store those that are enforced are of this process alone, too.
//
// The package never does I/O for a request, and knows no user who was not proven: its callers see to that.
//
//	b, err := bans.New(ctx, bans.Options{Store: store, Counters: counters, Clock: clock.Now})
//	if d, banned := b.Decide(now, key, effective); banned { … }
//	d := counters.Take(now, key, effective, 1)
//	if d.ThroughLimit() { b.Denied(now, key, effective) }
package bans
