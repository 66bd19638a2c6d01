package admin

import (
	"cmp"
	"context"
	"slices"

	"oauth-server/internal/activity"
	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/username"
)

// The orders of talkers.
const (
	byRequests = "requests"
	byWasted   = "wasted"
	byShed     = "shed"
)

// ranks are what talkers are ordered by.
var ranks = map[string]func(activity.ClientReport) uint64{
	byRequests: func(r activity.ClientReport) uint64 { return r.Total() + r.Shed },
	byWasted:   func(r activity.ClientReport) uint64 { return r.Wasted },
	byShed:     func(r activity.ClientReport) uint64 { return r.Shed + r.WouldShed },
}

// top answers with the clients that send most requests, waste most tokens or are shed most, the users who are denied most and the keys
// nearest their limits, on all instances; of one client if that is asked for.
func (s *Server) top(c *call) error {
	if err := c.parameters("limit", "client_id", "sort"); err != nil {
		return err
	}
	limit, err := c.number("limit", usuallyListed, topReported)
	if err != nil {
		return err
	}
	order := cmp.Or(c.query.Get("sort"), byRequests)
	if ranks[order] == nil {
		return invalidField("sort", "%q is none of %q, %q, %q", order, byRequests, byWasted, byShed)
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

// talkers returns the first clients in that order, or the one of that ID. Those without any wasted tokens
// or shed requests, if these are the order, are left out.
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

// near returns the keys nearest their limits: of all clients those of the reports, and of one all that
// can be found.
func (s *Server) near(ctx context.Context, id string, all []adminapi.Report, limit int) []adminapi.Counter {
	var out []adminapi.Counter
	if id != "" {
		now := s.o.Clock()
		for _, key := range []string{id, clientcfg.CandidateID(id)} {
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

// userHash answers with the hash that stands for a user in the log. The name may be typed in any way
// that the user can sign in with.
func (s *Server) userHash(c *call) error {
	if err := c.parameters("username"); err != nil {
		return err
	}
	typed := c.query.Get("username")
	if typed == "" {
		return invalidField("username", "is missing")
	}
	name := username.Stored(typed)
	return c.answer(adminapi.UserHash{Username: name, UserHash: s.o.UserHash(name)})
}
