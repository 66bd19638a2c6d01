package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// seriesShown is the number of clients with a series in the result.
const seriesShown = 20

// result returns the findings of the engine, with at most most clients.
func (e *engine) result(most int) *Result {
	s := e.stats
	r := &Result{From: s.first.UTC(), To: s.last.UTC(), Series: s.series.result(s.last), Clients: []Client{}}
	if s.first.IsZero() {
		r.From, r.To = time.Time{}, time.Time{}
	}
	all := make([]*client, 0, len(s.clients))
	for _, c := range s.clients {
		all = append(all, c)
	}
	r.Total = s.total()
	r.Reach = s.reach()
	slices.SortFunc(all, func(a, b *client) int {
		return cmp.Or(cmp.Compare(b.refused(), a.refused()), cmp.Compare(b.requests, a.requests), cmp.Compare(a.id, b.id))
	})
	r.MoreClients = max(len(all)-most, 0)
	for i, c := range all[:len(all)-r.MoreClients] {
		shown := c.result(s.users.estimated())
		if c.series != nil && i < seriesShown {
			series := c.series.result(s.last)
			shown.Series = &series
		}
		r.Clients = append(r.Clients, shown)
	}
	r.Notes = s.notes()
	if n := e.counters.Stats().Overflowed; n > 0 {
		r.Notes = append(r.Notes, overflowNote(n, e.counters.Stats().MaxKeys))
	}
	return r
}

func (s *stats) reach() Reach {
	r := Reach{ClientCount: len(s.clients), UsersHit: s.users.count(), UsersEstimated: s.users.estimated()}
	for _, c := range s.clients {
		if c.refused() > 0 {
			r.ClientsHit++
		}
	}
	return r
}

func (c *client) result(estimated bool) Client {
	n := c.counts()
	out := Client{ClientID: c.id, Counts: n, RefusedShare: n.RefusedShare(), WastedShare: n.WastedShare()}
	x := c.trouble
	if x == nil {
		return out
	}
	out.UsersHit, out.UsersEstimated = x.users, estimated && x.users > 0
	out.LongestBlocked, out.LongestWait = Seconds(x.longestBlocked.Seconds()), Seconds(x.longestWait.Seconds())
	if x.worst.refused > 0 {
		out.WorstMinute = &Minute{
			At: time.Unix(x.worst.at*60, 0).UTC(), Requests: uint64(x.worst.requests), Refused: uint64(x.worst.refused),
		}
	}
	return out
}

func (c *Counts) add(o Counts) {
	c.Requests += o.Requests
	c.Admitted += o.Admitted
	c.Denied += o.Denied
	c.Delayed += o.Delayed
	c.Reused += o.Reused
	c.Banned += o.Banned
	c.Failed += o.Failed
	c.Wasted += o.Wasted
}

func overflowNote(n, most int64) string {
	return fmt.Sprintf("%d requests shared a counter, because there were %d keys at once: some may have been denied too early", n, most)
}
