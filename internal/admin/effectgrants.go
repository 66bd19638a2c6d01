package admin

import (
	"strings"

	"oauth-server/internal/ratelimit"
)

// unlimited returns the grants with requests that are limited by user before a change but not after
// it, because a list for some grants replaces one for all grants. It covers the list that all users
// share, and the lists of users with overrides.
func unlimited(was, will *ratelimit.Effective) (g ratelimit.Grants) {
	if !enforced(was) || !enforced(will) {
		return 0
	}
	lost := func(was, will *ratelimit.Limits) bool {
		g |= counted(was) &^ counted(will)
		return false
	}
	lost(was.User, will.User)
	anyOverride(was, will, lost)
	return g
}

// counted returns the grants that at least one limit of the list counts.
func counted(list *ratelimit.Limits) (g ratelimit.Grants) {
	for _, l := range list.All() {
		if g |= l.Grants; l.Grants == 0 {
			g |= ratelimit.AllGrants
		}
	}
	return g
}

// unlimitedText returns a sentence about such grants, to follow other sentences, or "".
func unlimitedText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	last := len(names) - 1
	text := names[last]
	if last > 0 {
		text = strings.Join(names[:last], ", ") + " and " + text
	}
	return " Requests of " + text + " are not limited by user any more."
}
