package admin

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/admin/targets"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/limiter/preset"
)

// Default and maximum number of items in a page. Pages of policies and of candidates have the
// maximum by default.
const (
	usuallyListed = 100
	maxListed     = 1000
)

func (s *Server) onSettings(f func(*call, targets.Target) error) handler {
	return func(c *call) error { return f(c, targets.Settings()) }
}

func (s *Server) onTier(f func(*call, targets.Target) error) handler {
	return func(c *call) error {
		name, err := c.name("name", clientcfg.MaxTierNameLength)
		if err != nil {
			return err
		}
		return f(c, targets.Tier(name))
	}
}

// onPolicy accepts registered clients, and deleted ones that still have a policy or overrides.
func (s *Server) onPolicy(f func(*call, targets.Target) error) handler {
	return func(c *call) error {
		id, err := c.clientID()
		if err != nil {
			return err
		}
		p := s.o.Policies.Snapshot()
		if _, left := p.Policy(id); !left && p.For(id).Overridden() == 0 {
			if err := s.registered(c.Request().Context(), id); err != nil {
				return err
			}
		}
		return f(c, targets.Policy(id))
	}
}

// onOverride accepts the clients that onPolicy accepts, and every valid username, because the user
// may be created later.
func (s *Server) onOverride(f func(*call, targets.Target) error) handler {
	return s.onPolicy(func(c *call, policy targets.Target) error {
		name, err := c.username()
		if err != nil {
			return err
		}
		t, err := targets.Override(policy.Client(), name)
		if err != nil {
			return err
		}
		return f(c, t)
	})
}

func (s *Server) onCandidate(f func(*call, targets.Target) error) handler {
	return func(c *call) error {
		name, err := c.clientID()
		if err != nil {
			return err
		}
		t := targets.Candidate(name)
		if id := t.Client(); id != "" && !t.IsSet(s.o.Policies.Snapshot()) {
			if err := s.registered(c.Request().Context(), id); err != nil {
				return err
			}
		}
		return f(c, t)
	}
}

// registered returns an error if the client does not exist.
func (s *Server) registered(ctx context.Context, id string) error {
	unknown, err := s.unregistered(ctx, []string{id})
	if err == nil && len(unknown) > 0 {
		err = problem.NotFound("client %q does not exist", id)
	}
	return err
}

// unregistered returns which of the clients do not exist. If one is not in memory it may be new, so the
// changes in the store are read first.
func (s *Server) unregistered(ctx context.Context, ids []string) ([]string, error) {
	if s.o.ClientsElsewhere {
		return nil, nil
	}
	unknown := s.o.Clients.Directory().Missing(ids)
	if len(unknown) == 0 {
		return nil, nil
	}
	if err := s.o.Clients.Renew(ctx, 0); err != nil {
		return nil, err
	}
	return s.o.Clients.Directory().Missing(unknown), nil
}

// missing returns which of the clients are not registered, unless clients are registered elsewhere.
func (s *Server) missing(c *call, names []string) []string {
	if s.o.ClientsElsewhere {
		return nil
	}
	return s.clients(c).Missing(names)
}

// listed begins a page of targets.
func listed(p *clientcfg.PolicySnapshot, next string) adminapi.Listed {
	return adminapi.Listed{Version: p.Version(), LeftOut: p.LeftOut(), Next: next}
}

// listPolicies returns a page of the policies from the API and the configuration file.
func (s *Server) listPolicies(c *call) error {
	p := s.policies(c)
	names, next, err := c.page(p.AllClients())
	if err != nil {
		return err
	}
	all := each(names, func(id string) adminapi.Policy { return targets.PolicyView(p, id) })
	return c.answer(adminapi.Policies{Listed: listed(p, next), Unregistered: s.missing(c, names), Policies: all})
}

// listOverrides returns a page of a client's overrides.
func (s *Server) listOverrides(c *call, policy targets.Target) error {
	id, p := policy.Client(), s.policies(c)
	names, next, err := c.page(withoutPrefix(clientcfg.OverrideKey(id, ""), p.Set().Overrides.Keys()))
	if err != nil {
		return err
	}
	all := each(names, func(name string) adminapi.Override { return targets.OverrideView(p, id, name) })
	return c.answer(adminapi.Overrides{Listed: listed(p, next), ClientID: id, Overrides: all})
}

// listTiers returns a page of the tiers.
func (s *Server) listTiers(c *call) error {
	p := s.policies(c)
	set := p.Set()
	names, next, err := c.page(set.Tiers.Keys())
	if err != nil {
		return err
	}
	uses := set.TierUses()
	all := each(names, func(name string) adminapi.Tier { return targets.TierView(p, name, uses) })
	return c.answer(adminapi.Tiers{Listed: listed(p, next), Tiers: all})
}

// listCandidates returns a page of the candidates.
func (s *Server) listCandidates(c *call) error {
	p := s.policies(c)
	names, next, err := c.page(p.Set().Candidates.Keys())
	if err != nil {
		return err
	}
	out := adminapi.Candidates{Listed: listed(p, next)}
	out.Unregistered = slices.DeleteFunc(s.missing(c, names), func(name string) bool { return name == clientcfg.GlobalCandidate })
	recent := s.activity(c.Request().Context())
	out.Candidates = each(names, func(name string) adminapi.Candidate {
		view := targets.CandidateView(p, name)
		view.Activity = activityOf(&recent, name, view.Since)
		return view
	})
	return c.answer(out)
}

// listUnregistered returns a page of the unregistered clients with limits. It reads the clients
// last, so a client that was registered before its limits were set is not listed.
func (s *Server) listUnregistered(c *call) error {
	p := s.policies(c)
	unregistered := p.Unregistered(s.clients(c))
	if s.o.ClientsElsewhere {
		unregistered = func(func(string) bool) {}
	}
	names, next, err := c.page(unregistered)
	if err != nil {
		return err
	}
	all := each(names, func(id string) adminapi.UnregisteredClient {
		return adminapi.UnregisteredClient{ClientID: id, Applied: applied(p, id)}
	})
	return c.answer(adminapi.UnregisteredClients{Listed: listed(p, next), Unregistered: all})
}

// listPresets returns the named limits of this release.
func (s *Server) listPresets(c *call) error {
	return c.answer(adminapi.Presets{Presets: preset.All()})
}

// each returns what show returns for each name. It is never nil.
func each[V any](names []string, show func(name string) V) []V {
	out := make([]V, len(names))
	for i, name := range names {
		out[i] = show(name)
	}
	return out
}

// withoutPrefix yields the keys that start with a prefix, with the prefix removed.
func withoutPrefix(prefix string, keys iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range keys {
			if rest, is := strings.CutPrefix(key, prefix); is && !yield(rest) {
				return
			}
		}
	}
}

// page returns the names that the query selects: sorted, after a name, with a prefix, and a limited
// number. names come in any order. next is the after value for the next page, or empty.
func (c *call) page(names iter.Seq[string]) (page []string, next string, err error) {
	limit, err := c.number("limit", maxListed, maxListed)
	if err != nil {
		return nil, "", err
	}
	after, prefix := c.query.Get("after"), c.query.Get("prefix")
	page = lowest(int(limit)+1, strings.Compare, func(yield func(string) bool) {
		for name := range names {
			if name > after && strings.HasPrefix(name, prefix) && !yield(name) {
				return
			}
		}
	})
	page, next = cut(page, limit, func(name string) string { return name })
	return page, next, nil
}

// cut returns at most limit items of a list. If there are more, next is the name of the last one returned:
// the after value for the next page.
func cut[T any](list []T, limit int64, name func(T) string) (page []T, next string) {
	if int64(len(list)) <= limit {
		return list, ""
	}
	return list[:limit], name(list[limit-1])
}

// lowest returns the n lowest names, sorted. It stores at most twice as many, however many names
// there are.
func lowest(n int, compare func(a, b string) int, names iter.Seq[string]) []string {
	var found []string
	bound := "" // once n names are kept, higher names are not needed
	for name := range names {
		if bound != "" && compare(name, bound) >= 0 {
			continue
		}
		if found = append(found, name); len(found) == 2*n {
			slices.SortFunc(found, compare)
			found = found[:n]
			bound = found[n-1]
		}
	}
	slices.SortFunc(found, compare)
	return found[:min(n, len(found))]
}

// listClients returns a page of the registered clients.
func (s *Server) listClients(c *call) error {
	limit, err := c.number("limit", maxListed, usuallyListed)
	if err != nil {
		return err
	}
	filter, err := c.filter()
	if err != nil {
		return err
	}
	if s.o.Operator != "" {
		return s.listStored(c, limit, filter)
	}
	p, d := s.policies(c), s.clients(c)
	recent := s.activity(c.Request().Context())
	counts := make(map[string]activity.Counts, len(recent.Clients))
	for _, r := range recent.Clients {
		if trial, ok := p.Trial(r.ClientID); !ok || !trial.Since.Equal(r.TriedSince) {
			r.CandidateCounts = activity.CandidateCounts{} // of another candidate
		}
		counts[r.ClientID] = r.Counts
	}
	out := adminapi.Clients{Since: recent.Since}
	out.Clients, out.Next = pageOf(s.limited(c.query.Get("after"), d, p, counts), filter, limit, func(cl *clientcfg.Client) adminapi.Client {
		return s.showClient(cl, p, counts[cl.ID])
	})
	if c.caller.May(readRegistrations) != nil {
		for i := range out.Clients {
			out.Clients[i].Secrets = nil
		}
	}
	if out.Next == "" {
		if !s.o.ClientsElsewhere {
			out.Unregistered = p.UnregisteredInFile(d)
		}
		out.Unreadable = registry.UnreadableOf(d, filter.Prefix)
	}
	return c.answer(out)
}

// listStored is [Server.listClients] without limits and requests. It reads the store once, because
// one command needs all pages.
func (s *Server) listStored(c *call, limit int64, filter registry.Filter) (err error) {
	if s.stored == nil {
		if s.stored, err = clientcfg.ReadDirectory(c.Request().Context(), s.o.Registry); err != nil {
			return err
		}
	}
	var out adminapi.Clients
	out.Clients, out.Next = pageOf(s.stored.After(c.query.Get("after")), filter, limit, func(cl *clientcfg.Client) adminapi.Client {
		return adminapi.Client{Registration: adminapi.ShowRegistration(cl, s.o.Now()), Public: cl.Public, Admin: cl.IsOperator()}
	})
	if out.Next == "" {
		out.Unreadable = registry.UnreadableOf(s.stored, filter.Prefix)
	}
	return c.answer(out)
}

// pageOf returns the first clients that the filter selects, at most limit, and the value of after
// for the next page, empty on the last one.
func pageOf(
	clients iter.Seq[*clientcfg.Client], filter registry.Filter, limit int64, show func(*clientcfg.Client) adminapi.Client,
) (page []adminapi.Client, next string) {
	page = []adminapi.Client{}
	for cl := range clients {
		if !filter.Matches(cl) {
			continue
		}
		if int64(len(page)) == limit {
			return page, page[limit-1].ClientID
		}
		page = append(page, show(cl))
	}
	return page, ""
}

// labelParameter is the only query parameter that may be repeated.
const labelParameter = "label"

// filter reads which clients the query selects.
func (c *call) filter() (registry.Filter, error) {
	for _, label := range c.query[labelParameter] {
		if err := labels.CheckSelector(label); err != nil {
			return registry.Filter{}, problem.InvalidField(labelParameter, "%v", err)
		}
	}
	return registry.Filter{
		Prefix: c.query.Get("prefix"), Grant: clientcfg.Grant(c.query.Get("grant_type")), Labels: c.query[labelParameter],
	}, nil
}

func (s *Server) showClient(cl *clientcfg.Client, p *clientcfg.PolicySnapshot, counts activity.Counts) adminapi.Client {
	return adminapi.Client{
		Registration: adminapi.ShowRegistration(cl, s.o.Now()), Public: cl.Public, Admin: cl.IsOperator(),
		Applied: applied(p, cl.ID), Activity: counts,
	}
}

// applied returns the values in force for a client, registered or not.
func applied(p *clientcfg.PolicySnapshot, id string) adminapi.Applied {
	_, candidate := p.Set().Candidates.Get(id)
	return adminapi.Applied{
		Source: targets.Source(p, id), Until: targets.Until(p, clientcfg.PolicyTarget(id)), Candidate: candidate, Effective: adminapi.ShowEffective(p.For(id)),
	}
}

// instances returns every live process.
func (s *Server) instances(c *call) error {
	var newest int64
	all := s.reports(c.Request().Context())
	for _, r := range all {
		newest = max(newest, r.Instance.Policies.Version)
	}
	out := adminapi.Instances{Instances: make([]adminapi.Instance, len(all))}
	for i, r := range all {
		out.Instances[i] = r.Instance
		out.Instances[i].Policies.Current = r.Instance.Policies.Version == newest && r.Instance.Policies.LeftOut == 0
	}
	slices.SortFunc(out.Instances, func(a, b adminapi.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return c.answer(out)
}

// The functions below are for clients that are registered with another server: see Options.ClientsElsewhere.

// limited yields the clients with greater IDs, sorted. If clients are registered elsewhere, it
// yields the ones with recent requests or a policy. Only their IDs are known.
func (s *Server) limited(after string, d *clientcfg.Directory, p *clientcfg.PolicySnapshot, counts map[string]activity.Counts) iter.Seq[*clientcfg.Client] {
	if !s.o.ClientsElsewhere {
		return d.After(after)
	}
	ids := map[string]*clientcfg.Client{}
	for id := range maps.Keys(counts) {
		ids[id] = nil
	}
	for id := range p.AllClients() {
		ids[id] = nil
	}
	for cl := range d.After("") {
		ids[cl.ID] = cl
	}
	return func(yield func(*clientcfg.Client) bool) {
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			cl := ids[id]
			if cl == nil {
				cl = &clientcfg.Client{ID: id}
			}
			if id > after && !yield(cl) {
				return
			}
		}
	}
}
