package gateway

import (
	"net/netip"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestGuessesAreForgotten checks that a caller may have many requests in progress again some time
// after its last guess, or as soon as one of them gets a token.
func TestGuessesAreForgotten(t *testing.T) {
	now, source := time.Now(), netip.MustParseAddr("192.0.2.1")
	for name, forget := range map[string]func(u *underWay, p *place){
		"a token": (*underWay).proven,
		"time":    func(*underWay, *place) { now = now.Add(doubtedFor) },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnderWay()
			take := func() place { return u.take(now, "shop", source, false, false) }
			for range doubtedAfter {
				p := take()
				u.release(now, &p, true)
			}
			var last place
			for range mostDoubted {
				last = take()
				check.Equal(t, "one of the first", last.taken, true)
			}
			check.Equal(t, "one too many", take().taken, false)
			forget(u, &last)
			check.Equal(t, "the next one", take().taken, true)
		})
	}
}
