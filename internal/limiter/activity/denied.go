package activity

import (
	"cmp"
	"maps"
	"slices"

	"oauth-server/internal/ratelimit"
)

// Bounds on the users with denials: followed for one client, followed for all clients of one
// [Recorder] (about 12 MB), and reported for one client.
const (
	usersOfClient = 50
	maxUsers      = 20_000
	reportedUsers = 20
)

// MaxDenied bounds the denied users in a report of all clients, and so the size of a heartbeat.
const MaxDenied = 500

// Denials counts requests that were denied, that would have been in dry-run, and that a candidate
// would have denied.
type Denials struct {
	Denied             uint64 `json:"denied"`               // answered with 429
	WouldDeny          uint64 `json:"would_deny"`           // denied in dry-run, and passed
	CandidateWouldDeny uint64 `json:"candidate_would_deny"` // denied by a candidate
}

// Total returns the number of all denials.
func (d Denials) Total() uint64 { return d.Denied + d.WouldDeny + d.CandidateWouldDeny }

// Plus returns the sum of both.
func (d Denials) Plus(o Denials) Denials {
	return Denials{d.Denied + o.Denied, d.WouldDeny + o.WouldDeny, d.CandidateWouldDeny + o.CandidateWouldDeny}
}

// minus subtracts o, down to zero.
func (d Denials) minus(o Denials) Denials {
	return Denials{
		d.Denied - min(d.Denied, o.Denied), d.WouldDeny - min(d.WouldDeny, o.WouldDeny),
		d.CandidateWouldDeny - min(d.CandidateWouldDeny, o.CandidateWouldDeny),
	}
}

// Denials returns the denials in the counts.
func (c Counts) Denials() Denials {
	return Denials{c.Denied + c.Banned, c.WouldDeny + c.WouldBan, c.CandidateWouldDeny}
}

// UserReport is a user with denied requests, including dry-run and candidates. The figures are
// lower bounds: a user who was not always among the most denied users of the client may have had
// more.
type UserReport struct {
	ClientID string `json:"client_id"`
	Username string `json:"username"` // empty: the client itself
	Denials
}

// user has the denials of one user of a client. A client has at most usersOfClient of them. A new
// user takes the place of the least denied one and inherits its rank, so that the most denied users
// stay (Metwally, Agrawal and El Abbadi, Efficient Computation of Frequent and Top-k Elements in
// Data Streams, 2005).
type user struct {
	slots       window[[3]uint32] // as in Denials
	inherited   uint64            // rank of the replaced user
	inheritedAt int64             // slot of the replacement
}

func (u *user) add(n int64, o *Observation) {
	at := u.slots.at(n)
	for i, counts := range o.denies() {
		if counts {
			at[i]++
		}
	}
}

func (u *user) sum(now int64) (d Denials) {
	for n := range u.slots.live(now) {
		d = d.Plus(Denials{uint64(n[0]), uint64(n[1]), uint64(n[2])})
	}
	return d
}

// rank returns the sort key of a user. It is at least the number of denials in the window.
func (u *user) rank(now int64) uint64 {
	rank := u.sum(now).Total()
	if live(u.inheritedAt, now) {
		rank += u.inherited
	}
	return rank
}

// denies returns which fields of Denials count the request.
func (o *Observation) denies() [3]bool {
	outcome := o.Decision.Outcome
	return [3]bool{
		outcome == ratelimit.Denied || outcome == ratelimit.Banned,
		outcome == ratelimit.WouldDeny || outcome == ratelimit.WouldBan,
		o.Tried == ratelimit.WouldDeny || o.Tried == ratelimit.WouldBan,
	}
}

// recordDenied counts the request for its user if it was denied, or would have been.
func (s *shard) recordDenied(c *client, n int64, o *Observation) {
	if o.denies() == [3]bool{} {
		return
	}
	u := c.users[o.Username]
	if u == nil {
		if u = s.follow(c, n, o.Username); u == nil {
			return
		}
	}
	u.add(n, o)
}

// follow starts to follow a user of the client. It returns nil if there is no room. Only the client
// then counts the request.
func (s *shard) follow(c *client, n int64, name string) *user {
	u := &user{}
	if s.users >= maxUsers/shards && s.swept != n {
		s.sweepUsers(n)
	}
	if len(c.users) >= usersOfClient || s.users >= maxUsers/shards {
		if len(c.users) == 0 {
			return nil
		}
		var least string
		rank := ^uint64(0)
		for name, one := range c.users {
			if r := one.rank(n); r < rank {
				least, rank = name, r
			}
		}
		u.inherited, u.inheritedAt = rank, n
		delete(c.users, least)
		s.users--
	}
	if c.users == nil {
		c.users = map[string]*user{}
	}
	c.users[name] = u
	s.users++
	return u
}

// sweepUsers removes the users without denials in the window.
func (s *shard) sweepUsers(now int64) {
	s.swept, s.users = now, 0
	for _, c := range s.clients {
		maps.DeleteFunc(c.users, func(_ string, u *user) bool { return u.rank(now) == 0 })
		s.users += len(c.users)
	}
}

// denied appends the denied users of the client, ordered by denials, the most denied first.
func (c *client) denied(to []UserReport, id string, now int64) []UserReport {
	begin := len(to)
	for name, u := range c.users {
		if d := u.sum(now); d.Total() > 0 {
			to = append(to, UserReport{id, name, d})
		}
	}
	orderUsers(to[begin:])
	return to[:begin+min(len(to)-begin, reportedUsers)]
}

// orderUsers sorts by denials, the most denied first.
func orderUsers(us []UserReport) {
	slices.SortFunc(us, func(a, b UserReport) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.Username, b.Username))
	})
}

// mergeDenied adds up the denied users of several processes. It omits denials by a candidate other
// than the one in the merged report.
func mergeDenied(reports []Report, merged map[string]ClientReport) []UserReport {
	type key struct{ client, user string }
	sums := map[key]UserReport{}
	for _, r := range reports {
		other := map[string]bool{} // clients with another candidate
		for _, c := range r.Clients {
			other[c.ClientID] = !c.TriedSince.Equal(merged[c.ClientID].TriedSince)
		}
		for _, u := range r.Denied {
			if other[u.ClientID] {
				u.CandidateWouldDeny = 0
			}
			k := key{u.ClientID, u.Username}
			u.Denials = u.Plus(sums[k].Denials)
			sums[k] = u
		}
	}
	out := slices.DeleteFunc(slices.Collect(maps.Values(sums)), func(u UserReport) bool { return u.Total() == 0 })
	orderUsers(out)
	return out
}

// DeniedOf returns the denied users of a client, and its denials that belong to none of them.
func (r *Report) DeniedOf(clientID string) (users []UserReport, others Denials) {
	for _, c := range r.Clients {
		if c.ClientID == clientID {
			others = c.Denials()
		}
	}
	for _, u := range r.Denied {
		if u.ClientID == clientID {
			users, others = append(users, u), others.minus(u.Denials)
		}
	}
	return users, others
}
