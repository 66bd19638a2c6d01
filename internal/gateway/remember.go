package gateway

import (
	"time"

	"oauth-server/internal/gateway/subject"
)

// rotatedKept is how long the store keeps a refresh token that was used, and answered with another one. Many servers
// accept it again for some time, because the answer may be lost, so a retry has to count for its user. Most do so for
// seconds or minutes; without an end there would be an entry of every refresh of a month.
const rotatedKept = time.Hour

// remember keeps what leads to the user of a token that was issued: the username, the new refresh token, and the one that
// was used. A username that was recalled itself keeps its age: otherwise no answer would ever be compared with it again.
func (i *issued) remember(user string) {
	known, shared, client, now := i.g.o.Subjects, i.g.o.Shared, i.said.ClientID, i.g.o.Now()
	if i.said.Username != "" && !i.recalled {
		exactly, _ := leads(&i.said)
		known.Put(now, exactly, client, user, time.Time{})
		known.Put(now, anyCase(&i.said), client, user, time.Time{})
	}
	expires, fresh, used := i.claims.Expires(now), i.claims.Refresh, subject.Digest(i.said.RefreshToken)
	if !fresh.IsZero() {
		known.Put(now, fresh, client, user, expires)
		shared.Put(now, fresh, client, user, expires)
	}
	if used.IsZero() || used == fresh {
		return
	}
	if !i.followed { // of before this was known; servers that do not rotate get it again and again
		known.Put(now, used, client, user, expires)
	}
	switch lifetime := i.claims.Lifetime; {
	case !fresh.IsZero() && (lifetime == 0 || lifetime > rotatedKept):
		shared.Put(now, used, client, user, now.Add(rotatedKept))
	case !i.followed:
		shared.Put(now, used, client, user, expires)
	}
}
