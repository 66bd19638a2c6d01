package activity

import (
	"slices"

	"oauth-server/internal/ratelimit"
)

// A request shows only the limits that count its grant. So the list of a client's limits is
// assembled from requests of different grants.

// Covers reports whether limit a counts the requests of every grant that b counts.
func Covers(a, b ratelimit.Limit) bool {
	return a.Grants == 0 || b.Grants != 0 && b.Grants&^a.Grants == 0
}

// ofOthers reports whether the limit may be missing from requests of other grants.
func (l *limitRecord) ofOthers() bool { return l.limit.Grants != 0 }

func recordLimit(l *limitRecord) *ratelimit.Limit { return &l.limit }

func peakLimit(p *Peak) *ratelimit.Limit { return &p.Limit }

// united returns the union of a and b, in the order of their common list. For elements in both, it
// takes the one in a. It returns false if a and b belong to different lists: a limit that every
// request shows is in only one of them, or a limit has different values.
func united[T any](a, b []T, limitOf func(*T) *ratelimit.Limit) (all []T, same bool) {
	rest := a
	for i := range b {
		l := limitOf(&b[i])
		at := slices.IndexFunc(rest, func(t T) bool { return limitOf(&t).DeniesAs(*l) })
		switch {
		case at >= 0:
			all, rest = append(all, rest[:at+1]...), rest[at+1:]
		case l.Grants == 0 || slices.ContainsFunc(a, func(t T) bool { return limitOf(&t).Name == l.Name }):
			return nil, false
		default:
			all = append(all, b[i])
		}
	}
	everyone := func(list []T) (n int) {
		for i := range list {
			if limitOf(&list[i]).Grants == 0 {
				n++
			}
		}
		return n
	}
	return append(all, rest...), everyone(a) == everyone(b)
}
