package admin

import (
	"errors"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
)

// listBans returns a page of the bans in force, of all clients or one. With ended it includes bans
// that are over but remembered. In dry-run the list has the bans of this instance.
func (s *Server) listBans(c *call) error {
	limit, err := c.number("limit", maxListed, usuallyListed)
	if err != nil {
		return err
	}
	ended, err := c.flag("ended")
	if err != nil {
		return err
	}
	mode := ratelimit.Mode(c.query.Get("mode"))
	switch mode {
	case ratelimit.Unset:
		mode = ratelimit.Enforce
	case ratelimit.Enforce, ratelimit.DryRun:
	default:
		return problem.InvalidField("mode", "%q is not one of %q, %q", mode, ratelimit.Enforce, ratelimit.DryRun)
	}
	all, now := s.o.Bans.All(mode), s.o.Clock()
	client, after := c.query.Get("client_id"), c.query.Get("after")
	keys := lowest(int(limit)+1, strings.Compare, func(yield func(string) bool) {
		for key, ban := range all.All() {
			wanted := key > after && (client == "" || ban.ClientID == client) && (ban.Active(now) || ended && now.Before(ban.Forget))
			if wanted && !yield(key) {
				return
			}
		}
	})
	out := adminapi.Bans{Bans: []adminapi.Ban{}}
	keys, out.Next = cut(keys, limit, func(key string) string { return key })
	policies := s.o.Policies.Snapshot()
	for _, key := range keys {
		ban, _ := all.Get(key)
		shown := showBan(&ban, mode, now)
		shown.NotEnforced = shown.Active && !bans.Enforces(policies.For(ban.ClientID), mode)
		out.Bans = append(out.Bans, shown)
	}
	return c.answer(out)
}

func showBan(b *bans.Ban, m ratelimit.Mode, now time.Time) adminapi.Ban {
	shown := adminapi.Ban{
		ClientID: b.ClientID, DryRun: m == ratelimit.DryRun, Active: b.Active(now), Before: b.Level,
		Since: b.Since.UTC(), Until: b.Until.UTC(), Forgotten: b.Forget.UTC(),
	}
	if b.Username != "" {
		shown.Username = &b.Username
	}
	if !b.Lifted.IsZero() {
		shown.Lifted = b.Lifted.UTC()
	}
	return shown
}

// actionUnban is the action of an event for lifting a ban.
const actionUnban = "unban"

// liftBan ends the ban of a client, or of one of its users, on all instances. With forget, the next
// ban counts as the first.
func (s *Server) liftBan(c *call) error {
	id, err := c.clientID()
	if err != nil {
		return err
	}
	forget, err := c.flag("forget")
	if err != nil {
		return err
	}
	r, err := s.registrar(c, "")
	if err != nil {
		return err
	}
	user, err := s.username(c)
	if err != nil {
		return err
	}
	key := ratelimit.Key{ClientID: id}
	if user != nil {
		key.Username = *user
	}
	inDryRun, err := r.liftDryRun(key)
	if err != nil {
		return err
	}
	err = r.lift(key, forget)
	if errors.Is(err, bans.ErrNotFound) {
		if !inDryRun {
			return notBanned(key, forget)
		}
		err = nil
	}
	return c.done(err)
}

// lift ends a ban and records the actor, the reason and the resulting ban, or null if it is
// forgotten.
func (r *registrar) lift(key ratelimit.Key, forget bool) error {
	all := r.server.o.Bans
	before, err := all.Find(r.lasting(), key, forget)
	if err != nil {
		return err
	}
	var after any
	now := r.server.o.Clock()
	if !forget {
		lifted := before.Lift(now, false)
		after = showBan(&lifted, ratelimit.Enforce, now)
	}
	return r.recordUnban(key, showBan(&before, ratelimit.Enforce, now), after, func() error {
		_, _, err := all.Lift(r.lasting(), key, forget)
		return err
	})
}

// liftDryRun is lift for a dry-run ban of this instance, which is always forgotten. It reports
// whether there was one.
func (r *registrar) liftDryRun(key ratelimit.Key) (bool, error) {
	all := r.server.o.Bans
	before, there := all.FindDryRun(key)
	if !there {
		return false, nil
	}
	return true, r.recordUnban(key, showBan(&before, ratelimit.DryRun, r.server.o.Clock()), nil, func() error {
		all.LiftDryRun(key)
		return nil
	})
}

// recordUnban ends a ban together with its event.
func (r *registrar) recordUnban(key ratelimit.Key, before adminapi.Ban, after any, do func() error) error {
	return r.registry.Record(r.lasting(), actionUnban, clientcfg.BanTarget(key.ClientID, key.Username), before, after, do)
}

func notBanned(key ratelimit.Key, forget bool) *problem.Error {
	who, more := "the client \""+key.ClientID+"\" itself", ""
	if key.Username != "" {
		who = "that user of the client \"" + key.ClientID + "\""
	}
	if !forget {
		more = "; to forget a ban that has ended, add forget"
	}
	return problem.NotFound("%s is not banned%s", who, more)
}
