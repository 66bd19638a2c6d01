package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/bans"
	"oauth-server/internal/ratelimit"
)

func testBans(t *testing.T, target Target) {
	t.Helper()
	t.Run("kept by client and user", func(t *testing.T) { bansKept(t, target.fresh(t)) })
	t.Run("changed one version at a time", func(t *testing.T) { bansChanged(t, target.fresh(t)) })
	t.Run("followed from a mark", func(t *testing.T) { bansFollowed(t, target.fresh(t)) })
	t.Run("swept when over", func(t *testing.T) { bansSwept(t, target.fresh(t)) })
	t.Run("kept over a restart", func(t *testing.T) { bansLast(t, target) })
}

// banTime is far ahead: MongoDB removes what has expired.
var banTime = Epoch.AddDate(100, 0, 0)

func ban(clientID, username string, version int64) bans.Ban {
	return bans.Ban{
		Key:     ratelimit.Key{ClientID: clientID, Username: username},
		Version: version, Level: 3, Since: banTime, Until: banTime.Add(time.Minute), Forget: banTime.Add(time.Hour),
	}
}

// bansOf returns all that are stored, sorted.
func bansOf(t *testing.T, b Backend) []bans.Ban {
	t.Helper()
	list, _, err := b.Bans(t.Context(), bans.Mark{})
	succeed(t, "bans", err)
	return sortedBans(list)
}

func sortedBans(list []bans.Ban) []bans.Ban {
	slices.SortFunc(list, func(a, b bans.Ban) int {
		return cmp.Or(strings.Compare(a.ClientID, b.ClientID), strings.Compare(a.Username, b.Username))
	})
	return list
}

func bansKept(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	equal(t, "none", []bans.Ban(nil), bansOf(t, b))
	var want []bans.Ban
	for _, clientID := range []string{"shop", "shopping"} {
		for _, username := range []string{"", "ad", "ada", "älice"} {
			next := ban(clientID, username, 1)
			_, err := b.Ban(ctx, next.Key)
			failWith(t, "one that is not there", bans.ErrNotFound, err)
			succeed(t, "put", b.PutBan(ctx, next, 0))
			want = append(want, next)
		}
	}
	lifted := want[2]
	lifted.Version, lifted.Lifted, lifted.Until = 1<<50, banTime.Add(time.Second), banTime.Add(time.Second)
	succeed(t, "lift", b.PutBan(ctx, lifted, 1))
	want[2] = lifted
	equal(t, "all", want, bansOf(t, b))
	for _, w := range want {
		got, err := b.Ban(ctx, w.Key)
		succeed(t, "read", err)
		equal(t, "one", w, got)
	}
	again := want[2]
	again.Version, again.Lifted = again.Version+1, time.Time{}
	succeed(t, "ban again", b.PutBan(ctx, again, lifted.Version))
	got, err := b.Ban(ctx, again.Key)
	succeed(t, "read", err)
	equal(t, "one that was lifted before", again, got)
}

// bansChanged: of those who saw a version, one replaces it.
func bansChanged(t *testing.T, b Backend) {
	t.Helper()
	ctx, first := t.Context(), ban("shop", "ada", 10)
	failWith(t, "replace what is not there", bans.ErrChanged, b.PutBan(ctx, ban("shop", "ada", 11), 10))
	equal(t, "nothing", []bans.Ban(nil), bansOf(t, b))
	succeed(t, "put", b.PutBan(ctx, first, 0))
	failWith(t, "put where there is one", bans.ErrChanged, b.PutBan(ctx, ban("shop", "ada", 11), 0))
	failWith(t, "replace another version", bans.ErrChanged, b.PutBan(ctx, ban("shop", "ada", 11), 9))
	equal(t, "the first", []bans.Ban{first}, bansOf(t, b))
	for _, seen := range []int64{0, 10} {
		var stored atomic.Int32
		user := fmt.Sprint("user ", seen)
		if seen > 0 {
			succeed(t, "put", b.PutBan(ctx, ban("shop", user, seen), 0))
		}
		together(8, func(i int) {
			if b.PutBan(ctx, ban("shop", user, seen+1+int64(i)), seen) == nil {
				stored.Add(1)
			}
		})
		equal(t, fmt.Sprintf("stored in the place of %d", seen), int32(1), stored.Load())
	}
}

// bansFollowed: after a mark there is what was stored since, and in time nothing.
func bansFollowed(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	succeed(t, "put", b.PutBan(ctx, ban("shop", "ada", 1), 0))
	_, first, err := b.Bans(ctx, bans.Mark{})
	succeed(t, "read", err)
	list, again, err := b.Bans(ctx, bans.Mark{Number: first, Settled: true})
	succeed(t, "read", err)
	equal(t, "since the last", []bans.Ban(nil), list)
	equal(t, "mark", first, again)
	lifted := ban("shop", "ada", 2)
	lifted.Lifted = banTime
	succeed(t, "change", b.PutBan(ctx, lifted, 1))
	succeed(t, "put", b.PutBan(ctx, ban("shop", "bob", 1), 0))
	list, next, err := b.Bans(ctx, bans.Mark{Number: first})
	succeed(t, "read", err)
	equal(t, "since the first", []bans.Ban{lifted, ban("shop", "bob", 1)}, sortedBans(list))
	if next < first {
		t.Errorf("the mark falls from %d to %d", first, next)
	}
}

// bansSwept: once nobody needs them.
func bansSwept(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	over, lifted, known := ban("shop", "over", 1), ban("shop", "lifted", 1), ban("shop", "known", 1)
	over.Until, over.Forget = Epoch.Add(-time.Hour), Epoch.Add(-time.Minute)
	lifted.Until, lifted.Forget, lifted.Lifted = over.Until, over.Forget, Epoch
	for _, one := range []bans.Ban{over, lifted, known} {
		succeed(t, "put", b.PutBan(ctx, one, 0))
	}
	sweep(t, b, Epoch, 1)
	equal(t, "left", []bans.Ban{known, lifted}, bansOf(t, b))
	sweep(t, b, Epoch, 0)
	sweep(t, b, Epoch.Add(time.Hour), 1)
	equal(t, "left", []bans.Ban{known}, bansOf(t, b))
}

func bansLast(t *testing.T, target Target) {
	t.Helper()
	location := target.Location(t)
	b, err := target.Open(t.Context(), location)
	succeed(t, "open", err)
	succeed(t, "put", b.PutBan(t.Context(), ban("shop", "ada", 1), 0))
	succeed(t, "close", b.Close())
	equal(t, "after a restart", []bans.Ban{ban("shop", "ada", 1)}, bansOf(t, target.open(t, location)))
}
