package limits

import (
	"slices"
	"strings"

	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/ratelimit"
)

// sharedHeading is the heading of the column that showShared fills.
const sharedHeading = "SHARED LIMITS"

// showShared writes both lists with their names; empty if both lists are empty.
func showShared(total, source []ratelimit.Limit) string {
	var parts []string
	if len(total) > 0 {
		parts = append(parts, "total "+syntax.ShowLimits(total))
	}
	if len(source) > 0 {
		parts = append(parts, "source "+syntax.ShowLimits(source))
	}
	return strings.Join(parts, "; ")
}

// withoutEmpty removes the showShared column if it is empty in every row.
func withoutEmpty(rows [][]string) [][]string {
	at := slices.Index(rows[0], sharedHeading)
	some := slices.ContainsFunc(rows[1:], func(row []string) bool { return row[at] != "" })
	for i, row := range rows {
		switch {
		case !some:
			rows[i] = slices.Delete(row, at, at+1)
		case row[0] != "": // not a continuation row
			row[at] = orNone(row[at])
		}
	}
	return rows
}

// sharedKey describes the username that a total or a source is counted under; empty for the name of
// a user.
func sharedKey(username string) string {
	k := ratelimit.Key{Username: username}
	switch address, isSource := k.SourceAddress(); {
	case isSource:
		return "(from " + address + ")"
	case k == k.Total():
		return "(all users)"
	}
	return ""
}
