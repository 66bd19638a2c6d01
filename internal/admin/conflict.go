package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
)

// mostConflicts is how many changes a refusal names at most.
const mostConflicts = 10

// explained adds to a refusal because of the conditions who has changed what since the state that they name.
// It takes that from the trail; without it the refusal stands as it is.
func (s *Server) explained(c *call, ch *change, err error) error {
	p := stale(err)
	if p == nil {
		return err
	}
	ctx := context.WithoutCancel(c.Request().Context())
	since := ch.conditions.since()
	changes, failed := s.changesSince(ctx, ch.resource.target(), since)
	if failed != nil {
		return err
	}
	if len(changes) == 0 && ch.resource.state(ch.before).version == since {
		p.Detail += "; no operator has changed it: the configuration file is another one than that of the answer that you read"
	}
	return p.because(ch.resource.target(), changes, s.o.Now())
}

// stale returns the refusal because of conditions that an error is, if it can be because of a change; nil if it
// is another one.
func stale(err error) *problemError {
	var p *problemError
	if errors.As(err, &p) && p.Type == typeStale && p != errAbsent {
		return p
	}
	return nil
}

// because adds the changes that a refusal is because of, the newest first.
func (p *problemError) because(target string, changes []adminapi.AuditEntry, now time.Time) *problemError {
	p.Conflict = &adminapi.Conflict{Target: target, Now: now.UTC(), Changes: changes[:min(len(changes), mostConflicts)]}
	if p.Conflict.Changes == nil {
		p.Conflict.Changes = []adminapi.AuditEntry{}
	}
	if len(changes) > 0 {
		e := &changes[0]
		p.Detail += fmt.Sprintf("; the last change: %s by %s at %s, change %d", e.Action, adminapi.Who(&e.Actor), e.At.UTC().Format(time.RFC3339), e.Version)
	}
	return p
}

// since is the version of the state that the conditions name, by the newest of its ETags: 0 if it had not
// been changed, unknown if they name no state.
func (c conditions) since() int64 {
	since := int64(unknownVersion)
	for _, tag := range c.match {
		number, _, _ := strings.Cut(strings.TrimPrefix(tag, `"`), "-")
		if version, err := strconv.ParseInt(number, 10, 64); err == nil {
			since = max(since, version)
		}
	}
	return since
}

const unknownVersion = -1

// changesSince returns the changes of a target after a version, the newest first. Of those since an unknown
// version it returns the last one. A target that was removed is at version 0, as if it had never been changed,
// so what came before the last removal was not since then.
func (s *Server) changesSince(ctx context.Context, target string, since int64) (changes []adminapi.AuditEntry, err error) {
	events, err := s.o.Events.Events(ctx, clientcfg.EventQuery{Target: target, Limit: mostConflicts, Limits: true})
	for i := range events {
		e := adminapi.ShowEvent(of(&events[i], target))
		if e.Version <= since || since == 0 && e.Unreadable == "" && string(e.After) == "null" {
			break
		}
		if changes = append(changes, e); since == unknownVersion {
			break
		}
	}
	return changes, err
}

// of is what an event shows of one target.
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

// explained is that of the server for clients and users. A user has no version; then it is the last change
// that the trail has.
func (r *registrar) explained(err error, target string, changes int64) error {
	p := stale(err)
	if p == nil {
		return err
	}
	events, failed := r.server.o.Events.Events(context.WithoutCancel(r.Request().Context()), clientcfg.EventQuery{
		Target: target, Limit: int(min(max(changes, 1), mostConflicts)),
	})
	if failed != nil {
		return err
	}
	return p.because(target, showEvents(events), r.server.o.Now())
}
