package admin

import (
	"strings"

	"oauth-server/internal/ratelimit"
)

// unlimited returns the grants of which requests are limited by user before a change and not after it: a list of limits for
// some grants replaces one for all. It is about the list that all users have in common, and those of users with one of their own.
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

// counted returns the grants that any limit of the list counts.
func counted(list *ratelimit.Limits) (g ratelimit.Grants) {
	for _, l := range list.All() {
		if g |= l.Grants; l.Grants == 0 {
			g |= ratelimit.AllGrants
		}
	}
	return g
}

// unlimitedText says it in a sentence after others; empty if there is none.
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
