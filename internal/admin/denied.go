package admin

import (
	"cmp"
	"context"
	"slices"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret/username"
)

// Sort orders for talkers.
const (
	byRequests = "requests"
	byWasted   = "wasted"
	byShed     = "shed"
)

// ranks maps each order to its sort key.
var ranks = map[string]func(activity.ClientReport) uint64{
	byRequests: func(r activity.ClientReport) uint64 { return r.Total() + r.Shed },
	byWasted:   func(r activity.ClientReport) uint64 { return r.Wasted },
	byShed:     func(r activity.ClientReport) uint64 { return r.Shed + r.WouldShed },
}

// top returns, for all instances together, the clients with the most requests, wasted tokens or
// shed requests, the users with the most denials, and the keys nearest their limits. It can be
// restricted to one client.
func (s *Server) top(c *call) error {
	limit, err := c.number("limit", usuallyListed, topReported)
	if err != nil {
		return err
	}
	order := cmp.Or(c.query.Get("sort"), byRequests)
	if ranks[order] == nil {
		return problem.InvalidField("sort", "%q is not one of %q, %q, %q", order, byRequests, byWasted, byShed)
	}
	ctx, id := c.Request().Context(), c.query.Get("client_id")
	if c.query.Has("client_id") {
		if err := s.registered(ctx, id); err != nil {
			return err
		}
	}
	all := s.reports(ctx)
	recent := merged(all)
	out := adminapi.Top{
		Since: recent.Since, Talkers: talkers(recent.Clients, id, order, int(limit)), NearLimit: s.near(ctx, id, all, int(limit)),
		Denied: s.showDenied(recent.Denied, int(limit)),
	}
	if id != "" {
		users, others := recent.DeniedOf(id)
		shown := users[:min(int(limit), len(users))]
		for _, u := range users[len(shown):] {
			others = others.Plus(u.Denials)
		}
		out.Denied, out.DeniedOthers = s.showDenied(shown, len(shown)), &others
	}
	return c.answer(out)
}

// talkers returns the first clients in that order, or the one with that ID. If the order is wasted
// tokens or shed requests, it omits clients with a count of zero.
func talkers(clients []activity.ClientReport, id, order string, limit int) []adminapi.ClientCounts {
	out, rank := []adminapi.ClientCounts{}, ranks[order]
	slices.SortFunc(clients, func(a, b activity.ClientReport) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.ClientID, b.ClientID))
	})
	for _, r := range clients {
		if id == "" && len(out) < limit && (order == byRequests || rank(r) > 0) || id == r.ClientID {
			out = append(out, adminapi.ClientCounts{ClientID: r.ClientID, Counts: r.Counts})
		}
	}
	return out
}

// near returns the keys nearest their limits: from the reports for all clients, and from all
// sources for a single client.
func (s *Server) near(ctx context.Context, id string, all []adminapi.Report, limit int) []adminapi.Counter {
	var out []adminapi.Counter
	if id != "" {
		now := s.o.Clock()
		for _, key := range []string{id, ratelimit.CandidateID(id)} {
			usages, _ := s.usages(ctx, key, nil, limit, now)
			out = append(out, s.showUsages(usages, now)...)
		}
		for i := range out {
			out[i].Instance = s.o.Instance()
		}
	} else {
		for _, r := range all {
			for _, u := range r.Top {
				u.Instance = r.Instance.ID
				out = append(out, u)
			}
		}
	}
	if out = nearest(out, limit); out == nil {
		return []adminapi.Counter{}
	}
	return out
}

func (s *Server) showDenied(users []activity.UserReport, limit int) []adminapi.DeniedUser {
	out := make([]adminapi.DeniedUser, min(limit, len(users)))
	for i, u := range users[:len(out)] {
		out[i] = adminapi.DeniedUser{ClientID: u.ClientID, Denials: u.Denials}
		if u.Username != "" {
			out[i].Username, out[i].UserHash = &users[i].Username, s.o.UserHash(u.Username)
		}
	}
	return out
}

// userHash returns the hash that represents a user in the log. The name may be in any spelling that
// works for signing in.
func (s *Server) userHash(c *call) error {
	typed := c.query.Get("username")
	if typed == "" {
		return problem.InvalidField("username", "is missing")
	}
	name := username.Stored(typed)
	return c.answer(adminapi.UserHash{Username: name, UserHash: s.o.UserHash(name)})
}
