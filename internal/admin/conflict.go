package admin

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/precondition"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
)

// mostConflicts is how many changes a conflict error lists at most.
const mostConflicts = 10

// explained adds the changes since the state that the conditions name to a conflict error. It reads
// them from the trail. If that fails, it returns the error unchanged.
func (s *Server) explained(c *call, ch *change, err error) error {
	p := precondition.Stale(err)
	if p == nil {
		return err
	}
	ctx := context.WithoutCancel(c.Request().Context())
	since := ch.conditions.Since()
	changes, failed := s.changesSince(ctx, ch.target.Name(), since)
	if failed != nil {
		return err
	}
	if len(changes) == 0 && stateIn(ch.before, ch.target).Version <= since {
		p.Detail += "; no operator changed it: a temporary value has ended, or instances have different configuration files"
	}
	return because(p, ch.target.Name(), changes, s.o.Now())
}

// because adds to p the changes that caused a conflict, newest first.
func because(p *problem.Error, target string, changes []adminapi.AuditEntry, now time.Time) *problem.Error {
	p.Conflict = &adminapi.Conflict{Target: target, Now: now.UTC(), Changes: changes[:min(len(changes), mostConflicts)]}
	if p.Conflict.Changes == nil {
		p.Conflict.Changes = []adminapi.AuditEntry{}
	}
	if len(changes) > 0 {
		e := &changes[0]
		p.Detail += fmt.Sprintf("; last change: %s by %s at %s (change %d)", e.Action, adminapi.Who(&e.Actor), e.At.UTC().Format(time.RFC3339), e.Version)
	}
	return p
}

// changesSince returns the changes of a target after a version, newest first. After an unknown
// version it returns only the last one. A removed target has version 0, like one that was never
// changed, so changes before the last removal are not included.
func (s *Server) changesSince(ctx context.Context, target string, since int64) (changes []adminapi.AuditEntry, err error) {
	events, err := s.o.Events.Events(ctx, clientcfg.EventQuery{Target: target, Limit: mostConflicts, Limits: true})
	for i := range events {
		e := adminapi.ShowEvent(of(&events[i], target))
		if e.Version <= since || since == 0 && e.Unreadable == "" && string(e.After) == "null" {
			break
		}
		if changes = append(changes, e); since == precondition.Unknown {
			break
		}
	}
	return changes, err
}

// of returns the part of an event that concerns one target.
func of(e *clientcfg.Event, target string) *clientcfg.Event {
	one := *e
	one.More = nil
	for i := range e.More {
		if e.More[i].Target == target {
			one.Target, one.Before, one.After = target, e.More[i].Before, e.More[i].After
		}
	}
	return &one
}

// explained is the same for clients and users. A user has no version, so it adds the last change in
// the trail.
func (r *registrar) explained(err error, target string, changes int64) error {
	p := precondition.Stale(err)
	if p == nil {
		return err
	}
	events, failed := r.server.o.Events.Events(context.WithoutCancel(r.Request().Context()), clientcfg.EventQuery{
		Target: target, Limit: int(min(max(changes, 1), mostConflicts)),
	})
	if failed != nil {
		return err
	}
	return because(p, target, showEvents(events), r.server.o.Now())
}
