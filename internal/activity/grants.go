package activity

import (
	"slices"

	"oauth-server/internal/ratelimit"
)

// A request shows the limits that count its grant. So what is known of a client is put together from requests of
// different grants, which show different limits of one list.

// Covers reports whether limit a counts the requests of every grant that b counts.
func Covers(a, b ratelimit.Limit) bool {
	return a.Grants == 0 || b.Grants != 0 && b.Grants&^a.Grants == 0
}

// ofOthers reports whether requests of other grants may not show the limit.
func (l *limitRecord) ofOthers() bool { return l.limit.Grants != 0 }

func recordLimit(l *limitRecord) *ratelimit.Limit { return &l.limit }

func peakLimit(p *Peak) *ratelimit.Limit { return &p.Limit }

// united returns all that is in a or b, both in the order of one list, with what both have as a has it. It is false if
// they are not of one list: a limit of either is not in the other though every request shows it, or is there with
// other values.
func united[T any](a, b []T, limitOf func(*T) *ratelimit.Limit) (all []T, same bool) {
	rest := a
	for i := range b {
		l := limitOf(&b[i])
		at := slices.IndexFunc(rest, func(t T) bool { return sameCount(*limitOf(&t), *l) })
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
