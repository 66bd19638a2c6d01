package gateway

import (
	"time"
)

// rotatedKept is how long the store keeps a refresh token after the server has replaced it. Many
// servers accept the old token again for seconds or minutes because the answer may be lost, and a
// retry must count for its user. Without this bound, the store would keep an entry for every
// refresh of a month.
const rotatedKept = time.Hour

// remember stores the mappings to the user of an issued token: from the username, the new refresh
// token and the used refresh token. A username that was itself recalled keeps its age. Otherwise it
// would never expire and no answer would be compared with it again.
func (i *issued) remember(user string) {
	known, shared, client, now := i.g.o.Subjects, i.g.o.Shared, i.said.ClientID, i.g.o.Now()
	if i.said.Username != "" && !i.recalled {
		exactly, _ := leads(&i.said)
		known.Put(now, exactly, client, user, time.Time{})
		known.Put(now, anyCase(&i.said), client, user, time.Time{})
	}
	expires, fresh, used := i.answer.Expires(now), i.answer.Refresh, i.said.RefreshToken
	if !fresh.IsZero() {
		known.Put(now, fresh, client, user, expires)
		shared.Put(now, fresh, client, user, expires)
	}
	if used.IsZero() || used == fresh {
		return
	}
	if !i.followed { // the token is older than this memory; servers without rotation receive it again and again
		known.Put(now, used, client, user, expires)
	}
	switch lifetime := i.answer.Lifetime; {
	case !fresh.IsZero() && (lifetime == 0 || lifetime > rotatedKept):
		shared.Put(now, used, client, user, now.Add(rotatedKept))
	case !i.followed:
		shared.Put(now, used, client, user, expires)
	}
}
