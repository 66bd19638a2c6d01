// Package lockout finds limits that keep operators from the admin API, so that no change of limits
// makes the next one impossible.
package lockout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// operatorPatience is the longest time that a limit may keep an operator from getting a token.
const operatorPatience = time.Minute

// lockoutModes are the modes in which a client may be locked out: its mode at this instance, and its
// mode at the other instances, which usually have no mode of their own.
var lockoutModes = []modeOf{
	(*clientcfg.PolicySnapshot).SharedMode,
	func(p *clientcfg.PolicySnapshot, clientID string) ratelimit.Mode { return p.For(clientID).Mode },
}

// modeOf returns the mode of a client.
type modeOf func(p *clientcfg.PolicySnapshot, clientID string) ratelimit.Mode

// By returns an [Error] if an enforced limit of the snapshot would lock the operator's
// client out of the admin API: once used up, it admits less than one request a minute, or it denies
// everything in an outage. Enforced means at this instance, or at instances without a mode of their
// own.
func By(p *clientcfg.PolicySnapshot, c *clientcfg.Client) error {
	for _, mode := range lockoutModes {
		if err := by(p, c, mode); err != nil {
			return err
		}
	}
	return nil
}

// by is By for one of the modes.
func by(p *clientcfg.PolicySnapshot, c *clientcfg.Client, mode modeOf) error {
	if !c.Operates() {
		return nil
	}
	e := p.For(c.ID)
	if e.Trusted || mode(p, c.ID) != ratelimit.Enforce {
		return nil
	}
	lists := []*ratelimit.Limits{e.Total, e.Source}
	if c.May(clientcfg.ClientCredentials) {
		lists = append(lists, e.Client)
	}
	if c.ActsForUsers() {
		lists = append(lists, e.User)
	}
	for _, list := range lists {
		if l, does := lockedOutBy(c, list); does {
			return &Error{ClientID: c.ID, Limit: l}
		}
	}
	if !c.ActsForUsers() {
		return nil
	}
	var first *Error // in order of usernames, so that the same error is always reported and logged once
	for username, list := range e.Overrides() {
		if l, does := lockedOutBy(c, list); does && (first == nil || username < first.Username) {
			first = &Error{ClientID: c.ID, Username: username, Limit: l}
		}
	}
	if first == nil {
		return nil
	}
	return first
}

// lockedOutBy returns a limit that would keep an operator's client out. It ignores limits that
// count only grants the client may not use.
func lockedOutBy(c *clientcfg.Client, list *ratelimit.Limits) (ratelimit.Limit, bool) {
	var usable ratelimit.Grants
	for _, g := range c.Grants {
		usable |= ratelimit.GrantOf(string(g))
	}
	for _, l := range list.All() {
		if l.Grants != 0 && l.Grants&usable == 0 {
			continue
		}
		if l.Requests < leastRequests(l.Window) || l.OnOutage == ratelimit.Deny {
			return l, true
		}
	}
	return ratelimit.Limit{}, false
}

// leastRequests returns how many requests an operator needs per window.
func leastRequests(window time.Duration) int64 {
	return int64((window + operatorPatience - 1) / operatorPatience)
}

// Error is returned for a limit that would lock out an operator's client.
type Error struct {
	ClientID string
	Username string // of the override that has the limit; empty without an override
	Limit    ratelimit.Limit
}

// Error implements error.
func (e *Error) Error() string {
	who, instead := fmt.Sprintf("the admin client %q", e.ClientID), "or give it its own limits"
	if e.Username != "" {
		who, instead = fmt.Sprintf("the user %q of the admin client %q", e.Username, e.ClientID), "or give that user higher limits"
	}
	if e.Limit.Requests >= leastRequests(e.Limit.Window) {
		return fmt.Sprintf("the limit %q denies all requests while counts cannot be stored (on_outage: deny), which would lock out %s; "+
			"trust that client first, %s", e.Limit.Name, who, instead)
	}
	return fmt.Sprintf("the limit %q of %d requests in %v would lock out %s, which needs at least %d per window; "+
		"trust that client first, %s", e.Limit.Name, e.Limit.Requests, e.Limit.Window, who, leastRequests(e.Limit.Window), instead)
}

// Newly returns an error if the snapshot after locks out an operator's client that before does
// not, now or from the end of a temporary change on. It reports the earliest time, and the first
// client by ID. The error is or wraps a *[Error].
func Newly(d *clientcfg.Directory, before, after *clientcfg.PolicySnapshot) error {
	operators := slices.SortedFunc(d.Operators(), func(a, b *clientcfg.Client) int { return cmp.Compare(a.ID, b.ID) })
	concerns := func(target string) bool { // the policy of an operator's client, overrides of its users, the settings, and tiers
		id, all := (&clientcfg.Change{Target: target}).Concerns()
		_, tier := clientcfg.TierOf(target)
		return all || tier || slices.ContainsFunc(operators, func(c *clientcfg.Client) bool { return c.ID == id })
	}
	err := lockedOut(operators, before, after)
	for _, then := range clientcfg.Ends(concerns, before, after) {
		if err != nil {
			break
		}
		before, after = before.At(then), after.At(then)
		if err = lockedOut(operators, before, after); err != nil {
			err = fmt.Errorf("after the temporary value ends at %s: %w", then.Format(time.RFC3339), err)
		}
	}
	return err
}

func lockedOut(operators []*clientcfg.Client, before, after *clientcfg.PolicySnapshot) error {
	for _, c := range operators {
		for _, mode := range lockoutModes {
			err := by(after, c, mode)
			if err != nil && by(before, c, mode) == nil {
				return err
			}
		}
	}
	return nil
}
