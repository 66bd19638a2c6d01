package admin

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/guard"
	"oauth-server/internal/admin/precondition"
	"oauth-server/internal/admin/preview"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/admin/targets"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/lockout"
)

// Actions in the audit trail.
const (
	actionUpdate  = "update"
	actionDelete  = "delete"
	actionPromote = "promote"
	actionReset   = "reset"
	actionUndo    = "undo"
)

// change is a requested change: the target, the conditions and the actor.
type change struct {
	target     targets.Target // that the conditions refer to; zero: everything that operators have set
	changes    targets.Target // the changed target; differs from target only for promote
	action     string
	conditions precondition.Conditions
	derive     deriver
	by         *guard.Caller
	reason     string
	lasts      time.Duration // how long a temporary change lasts; 0 for a permanent one

	until  time.Time                 // end of a temporary change; set together with before
	before *clientcfg.PolicySnapshot // set by each run of the edit; the last run counts
	made   []clientcfg.Change
}

// deriver returns the changes to make.
type deriver func(p *clientcfg.PolicySnapshot, now time.Time) ([]clientcfg.Change, error)

// stateIn returns the state of a target, or of everything that operators have set.
func stateIn(p *clientcfg.PolicySnapshot, t targets.Target) precondition.State {
	if t == (targets.Target{}) {
		// The number of temporary values changes at their ends, which do not change the version.
		return precondition.State{Doc: p.Set().Temporary.Len(), Exists: true, Version: p.Version()}
	}
	st := t.State(p)
	return precondition.State{Doc: st.Doc, Exists: st.Exists, Version: st.Changed}
}

// edit returns the edit for [clientcfg.PolicySource], which may run it several times.
func (s *Server) edit(ch *change) clientcfg.Edit {
	return func(p *clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
		ch.before = p
		now := s.o.Now().UTC().Truncate(time.Millisecond)
		if err := ch.allowed(p); err != nil {
			return e, err
		}
		if ch.made, err = ch.derive(p, now); err != nil {
			return e, err
		}
		if len(ch.made) == 0 {
			return e, errNothing
		}
		if ch.lasts > 0 {
			ch.until = s.o.Clock().UTC().Truncate(time.Millisecond).Add(ch.lasts)
			if ch.made, err = clientcfg.Temporarily(ch.made, ch.until); err != nil {
				return e, err
			}
		}
		e.At, e.Changes = now, ch.made
		p.Complete(&e)
		after, err := p.Apply(&e)
		if err == nil {
			err = after.CheckEnds(p).Err()
		}
		if err == nil {
			err = lockout.Newly(s.o.Clients.Directory(), p, after)
		}
		if err == nil {
			err = s.describe(&e, ch, p, after)
		}
		return e, err
	}
}

// allowed checks the conditions, and that a target to be deleted or promoted exists.
func (ch *change) allowed(p *clientcfg.PolicySnapshot) error {
	st := stateIn(p, ch.target)
	if err := ch.conditions.Check(st); err != nil {
		return err
	}
	if ch.action == actionUpdate || st.Exists || p.IsLeftOut(ch.target.Name()) {
		return nil
	}
	if absent := ch.target.Absent(); absent != "" {
		return problem.NotFound("%s", absent)
	}
	return problem.NotFound("no operator has set this; the configuration file or the settings for all clients apply")
}

// effect returns the clients that the change would have hit. It covers all clients that this
// instance has recorded, and the clients in the reports of other instances.
func (s *Server) effect(ctx context.Context, ch *change, after *clientcfg.PolicySnapshot) adminapi.Effect {
	all := s.reports(ctx)
	own := s.o.Activity.Report(s.o.Now(), math.MaxInt)
	own.Incomplete = own.Incomplete || all[0].Activity.Incomplete
	all[0].Activity = own
	p := preview.Change{
		Before: ch.before, After: after, Made: ch.made, Directory: s.o.Clients.Directory(), Elsewhere: s.o.ClientsElsewhere,
		Recent: merged(all), Now: s.o.Now(),
	}
	return p.Effect()
}

// describe adds the fields for the audit trail to the event.
func (s *Server) describe(e *clientcfg.Event, ch *change, before, after *clientcfg.PolicySnapshot) error {
	e.Actor, e.Action, e.Reason, e.Instance, e.Until = ch.by.Actor(), ch.action, ch.reason, s.o.Instance(), ch.until
	changed := targets.Changes(ch.made, before, after)
	if len(changed) == 0 {
		return errors.New("admin: unknown target of a change")
	}
	e.Target, e.Before, e.After, e.More = changed[0].Target, changed[0].Before, changed[0].After, changed[1:]
	return nil
}

// get returns the target and its ETag.
func (s *Server) get(c *call, t targets.Target) error { return s.answerTarget(c, t, s.policies(c)) }

func (s *Server) answerTarget(c *call, t targets.Target, p *clientcfg.PolicySnapshot) error {
	st := stateIn(p, t)
	return c.answerState(http.StatusOK, st, func() (any, error) {
		if absent := t.Absent(); absent != "" && !st.Exists {
			return nil, problem.NotFound("%s", absent)
		}
		view := t.View(p)
		if candidate, is := view.(adminapi.Candidate); is {
			recent := s.activity(c.Request().Context())
			candidate.Activity = activityOf(&recent, candidate.ClientID, candidate.Since)
			view = candidate
		}
		return view, nil
	})
}

func (s *Server) put(c *call, t targets.Target) error {
	v, err := c.body("application/json")
	if err != nil {
		return err
	}
	return s.change(c, t, actionUpdate, func(p *clientcfg.PolicySnapshot, now time.Time) (clientcfg.Change, error) {
		return t.With(p, v, now)
	})
}

func (s *Server) patch(c *call, t targets.Target) error {
	v, err := c.mergePatch()
	if err != nil {
		return err
	}
	return s.change(c, t, actionUpdate, func(p *clientcfg.PolicySnapshot, now time.Time) (clientcfg.Change, error) {
		whole, err := patched(t.State(p).Base, v)
		if err != nil {
			return clientcfg.Change{}, err
		}
		return t.With(p, whole, now)
	})
}

func (s *Server) remove(c *call, t targets.Target) error {
	return s.change(c, t, actionDelete, func(p *clientcfg.PolicySnapshot, now time.Time) (clientcfg.Change, error) {
		return t.With(p, nil, now)
	})
}

// change changes one target and returns its new state.
func (s *Server) change(c *call, t targets.Target, action string, derive func(p *clientcfg.PolicySnapshot, now time.Time) (clientcfg.Change, error)) error {
	return s.perform(c, &change{target: t, changes: t, action: action, derive: func(p *clientcfg.PolicySnapshot, now time.Time) ([]clientcfg.Change, error) {
		one, err := derive(p, now)
		return []clientcfg.Change{one}, err
	}})
}

// promote makes a candidate live: its limits become the client's limits, or the default limits. A
// trusted client is no longer trusted afterwards, because the candidate was tried as limits.
func (s *Server) promote(c *call, t targets.Target) error {
	return s.perform(c, &change{
		target: t, changes: t.Live(), action: actionPromote,
		derive: func(p *clientcfg.PolicySnapshot, _ time.Time) ([]clientcfg.Change, error) { return t.Promoted(p) },
	})
}

// asked reads the parameters of a change. only is true if the change is only to be rehearsed.
func (c *call) asked(ch *change) (only bool, err error) {
	if only, err = c.flag("validate"); err != nil {
		return false, err
	}
	reason, err := c.reason()
	if err != nil {
		return false, err
	}
	ch.by, ch.conditions, ch.reason = c.caller, precondition.Of(c.Request().Header), ch.reason+reason
	if !only && ch.action != actionUndo && !ch.conditions.Given() {
		return false, precondition.ErrMissing
	}
	return only, nil
}

// make makes the change, or only rehearses it, and returns the policies after it.
func (s *Server) make(c *call, ch *change, only bool) (after *clientcfg.PolicySnapshot, err error) {
	if only {
		after, err = s.o.Policies.Try(c.Request().Context(), s.edit(ch))
	} else {
		after, err = s.o.Policies.Change(c.lasting(), s.edit(ch))
	}
	return after, s.explained(c, ch, err)
}

// perform makes the change and responds. With ?validate=true it only returns the effect of the
// change.
func (s *Server) perform(c *call, ch *change) (err error) {
	if c.query.Has("for") {
		if ch.lasts, err = readFor(c.query.Get("for")); err != nil {
			return problem.InvalidField("for", "%v", err)
		}
	}
	only, err := c.asked(ch)
	if err != nil {
		return err
	}
	after, err := s.make(c, ch, only)
	switch {
	case err != nil:
		return err
	case only:
		return c.answer(adminapi.Rehearsal{
			Valid: true, Before: ch.changes.Encoded(ch.before), After: ch.changes.Encoded(after),
			Until: ch.until, WasUntil: targets.Until(ch.before, ch.changes.Name()), Effect: s.effect(c.Request().Context(), ch, after),
		})
	case ch.action == actionDelete:
		return c.done(nil)
	}
	return s.answerTarget(c, ch.changes, after)
}
