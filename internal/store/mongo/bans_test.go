package mongo

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/bans"
	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestBanFromAClockThatWasAhead: what is stored after it is found all the same.
func TestBanFromAClockThatWasAhead(t *testing.T) {
	uri, database, _ := strings.Cut(location(t), " ")
	s := openAt(t, uri, database)
	ctx, until := t.Context(), time.Now().Add(time.Hour).Truncate(time.Millisecond)
	put := func(user string) {
		check.OK(t, s.PutBan(ctx, bans.Ban{Key: ratelimit.Key{ClientID: "shop", Username: user}, Version: 1, Since: until, Until: until, Forget: until}, 0))
	}
	put("ahead")
	setFields(t, s, "bans", banKey{ClientID: "shop", Username: "ahead"}, bson.D{{Key: "updated", Value: time.Now().Add(time.Hour)}})
	_, mark, err := s.Bans(ctx, bans.Mark{})
	check.OK(t, err)
	put("next")
	list, _, err := s.Bans(ctx, bans.Mark{Number: mark})
	check.OK(t, err)
	var found bool
	for _, b := range list {
		found = found || b.Username == "next"
	}
	check.Equal(t, "found", found, true)
}
