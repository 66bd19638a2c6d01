package admin

import (
	"strconv"
	"strings"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/username"
)

// audit answers with the audit trail, the newest entry first: the entries of policies and the events of
// clients and users, merged by their times. before and before_event are the places to continue from; with
// before alone there are entries of policies only.
func (s *Server) audit(c *call) error {
	if err := c.parameters("before", "before_event", "limit", "target"); err != nil {
		return err
	}
	limit, err := c.number("limit", maxListed, usuallyListed)
	if err != nil {
		return err
	}
	before, err := c.number("before", 1<<62, 0)
	if err != nil {
		return err
	}
	m := merge{limit: int(limit), before: before}
	if m.beforeEvent, err = c.number("before_event", 1<<62, 0); err != nil {
		return err
	}
	ctx := c.Request().Context()
	target := auditTarget(c.query.Get("target"))
	m.entries, err = s.o.Audit.Audit(ctx, clientcfg.AuditQuery{Target: target, Before: before, Limit: m.limit})
	if err == nil && (before == 0 || m.beforeEvent != 0) {
		m.events, err = s.o.Events.Events(ctx, clientcfg.EventQuery{Target: target, Before: m.beforeEvent, Limit: m.limit})
	}
	if err != nil {
		return err
	}
	return c.answer(m.page())
}

// auditTarget returns the target as it stands in the trail: a user is meant by any way to write the name. The
// user may be deleted.
func auditTarget(target string) string {
	typed, isUser := strings.CutPrefix(target, clientcfg.UserTarget(""))
	canonical, err := username.Canonical(typed)
	if !isUser || err != nil {
		return target
	}
	return clientcfg.UserTarget(canonical)
}

// merge makes a page of the trail of the next entries and the next events, at most limit of each.
type merge struct {
	limit       int
	before      int64
	beforeEvent int64
	entries     []clientcfg.AuditEntry
	events      []clientcfg.Event
}

func (m *merge) page() adminapi.Audit {
	out := adminapi.Audit{Entries: []adminapi.AuditEntry{}}
	entry, event := 0, 0
	for len(out.Entries) < m.limit && (entry < len(m.entries) || event < len(m.events)) {
		if event == len(m.events) || entry < len(m.entries) && !m.older(entry, event) {
			out.Entries = append(out.Entries, adminapi.ShowAuditEntry(&m.entries[entry]))
			entry++
		} else {
			out.Entries = append(out.Entries, adminapi.ShowEvent(&m.events[event]))
			event++
		}
	}
	if m.left(entry, event) {
		out.Next, out.NextEvent = m.next(entry), strconv.FormatInt(m.beforeEvent, 10)
		if event > 0 {
			out.NextEvent = strconv.FormatInt(m.events[event-1].Number, 10)
		}
	}
	return out
}

// older reports whether an entry is older than an event. Of one that cannot be read the time may not be known:
// it is taken to be as new as the entry after it in the trail, which is on the page already.
func (m *merge) older(entry, event int) bool {
	e := &m.entries[entry]
	return !e.At.IsZero() && e.At.Before(m.events[event].At)
}

// left reports whether there may be more than the first entries and events.
func (m *merge) left(entry, event int) bool {
	full := len(m.entries) == m.limit && m.entries[m.limit-1].Version > 1
	return entry < len(m.entries) || full || event < len(m.events) || len(m.events) == m.limit
}

// next is the value of before that continues after the first entries.
func (m *merge) next(entry int) int64 {
	switch {
	case entry > 0:
		return m.entries[entry-1].Version
	case len(m.entries) > 0:
		return m.entries[0].Version + 1
	case m.before > 0:
		return m.before
	}
	return 1 // below which there is none
}
