package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
)

// undo gives the targets of an earlier change their previous values. It is a normal change, which
// can be undone too.
func (s *Server) undo(c *call) error {
	version, err := strconv.ParseInt(c.Param("version"), 10, 64)
	if err != nil || version < 1 {
		return notFound("a change is named by its version, a number from 1 on")
	}
	u := &undoing{events: s.o.Events, version: version}
	ctx := c.Request().Context()
	ch := &change{
		resource: wholeSet{}, action: actionUndo, reason: fmt.Sprintf(undoReason, version),
		derive: func(p *clientcfg.PolicySnapshot, _ time.Time) ([]clientcfg.Change, error) {
			if err := u.read(ctx); err != nil {
				return nil, err
			}
			if err := u.possible(); err != nil {
				return nil, err
			}
			return u.entry.Undo(p, s.o.Clock())
		},
	}
	if c.query.Get("reason") != "" {
		ch.reason += ": "
	}
	only, err := c.asked(ch)
	if err != nil {
		return err
	}
	if err := u.read(ctx); err != nil { // reads most of it before blocking others
		return err
	}
	return s.performMany(c, ch, only)
}

// undoing is a change to be undone, with the changes after it.
type undoing struct {
	events  clientcfg.EventLog
	version int64

	entry   *clientcfg.Event
	changed map[string][]*clientcfg.Event // later changes of each of its targets that were not undone
	next    int64                         // trail number to continue reading from
}

// read reads the change and the later changes that have not been read yet.
func (u *undoing) read(ctx context.Context) error {
	events, err := u.events.Events(ctx, clientcfg.EventQuery{Since: max(u.next, u.version), Limits: true})
	if err != nil {
		return err
	}
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		switch {
		case e.Err != nil:
			return conflict("change %d cannot be undone, because it or a later one cannot be read: %v", u.version, e.Err)
		case u.entry != nil:
			u.since(e)
		case e.Number == u.version:
			u.entry, u.changed = e, map[string][]*clientcfg.Event{}
			for _, target := range clientcfg.Targets(e.Changes) {
				u.changed[target] = nil
			}
		}
		u.next = e.Number + 1
	}
	if u.entry == nil {
		return notFound("the trail has no change %d of limits", u.version)
	}
	return nil
}

// since records a later change. If it undoes the last recorded change of a target, both cancel out.
func (u *undoing) since(e *clientcfg.Event) {
	later := &clientcfg.Event{Number: e.Number, At: e.At, Actor: e.Actor, Action: e.Action}
	undone, changed := undoneBy(e), clientcfg.Targets(e.Changes)
	for target, since := range u.changed {
		switch n := len(since); {
		case n > 0 && undone == since[n-1].Number:
			u.changed[target] = since[:n-1]
		case slices.Contains(changed, target):
			u.changed[target] = append(since, later)
		}
	}
}

// undoReason is the start of the reason for undoing a change.
const undoReason = "change %d"

// undoneBy returns the version of the change that an entry undoes, or 0.
func undoneBy(e *clientcfg.Event) (version int64) {
	if e.Action == actionUndo {
		_, _ = fmt.Sscanf(e.Reason, undoReason, &version) // 0 if it is missing
	}
	return version
}

// possible returns an error if the change cannot be undone.
func (u *undoing) possible() error {
	for i := range u.entry.Changes {
		if !u.entry.Changes[i].IsState() {
			return conflict("a reset of counters cannot be undone: the counts of before are gone")
		}
	}
	for _, target := range slices.Sorted(maps.Keys(u.changed)) {
		if since := u.changed[target]; len(since) > 0 {
			e := since[len(since)-1]
			return problem(http.StatusConflict, typeConflict, "Changed since",
				"change %d is not the last one of %s: %s did %s it in change %d, at %s; undo that first, or set what you need",
				u.version, target, adminapi.Who(&e.Actor), e.Action, e.Number, e.At.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
