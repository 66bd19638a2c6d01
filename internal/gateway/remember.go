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
// was used.
func (x *tokenCall) remember(now time.Time, claims *subject.Claims, user string) {
	if digest, _ := x.leads(); x.said.Username != "" {
		x.g.o.Subjects.Put(now, digest, x.said.ClientID, user, time.Time{})
		x.g.o.Subjects.Put(now, x.anyCase(), x.said.ClientID, user, time.Time{})
	}
	expires, used := claims.Expires(now), subject.Digest(x.said.RefreshToken)
	if !claims.Refresh.IsZero() {
		x.g.o.Subjects.Put(now, claims.Refresh, x.said.ClientID, user, expires)
		x.g.o.Shared.Put(now, claims.Refresh, x.said.ClientID, user, expires)
	}
	if used.IsZero() || used == claims.Refresh {
		return
	}
	followed := x.user != ""
	if !followed { // of before this was known; servers that do not rotate get it again and again
		x.g.o.Subjects.Put(now, used, x.said.ClientID, user, expires)
	}
	switch rotated := !claims.Refresh.IsZero(); {
	case rotated && (claims.Lifetime == 0 || claims.Lifetime > rotatedKept):
		x.g.o.Shared.Put(now, used, x.said.ClientID, user, now.Add(rotatedKept))
	case !followed:
		x.g.o.Shared.Put(now, used, x.said.ClientID, user, expires)
	}
}
