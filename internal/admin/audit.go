package admin

import (
	"strings"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret/username"
)

// audit returns a page of the audit trail, newest entry first.
func (s *Server) audit(c *call) error {
	limit, err := c.number("limit", maxListed, usuallyListed)
	if err != nil {
		return err
	}
	before, err := c.number("before", 1<<62, 0)
	if err != nil {
		return err
	}
	events, err := s.o.Events.Events(c.Request().Context(), clientcfg.EventQuery{
		Target: auditTarget(c.query.Get("target")), Before: before, Limit: int(limit) + 1,
	})
	if err != nil {
		return err
	}
	out := adminapi.Audit{}
	if len(events) > int(limit) {
		events = events[:limit]
		out.Next = events[limit-1].Number
	}
	out.Entries = showEvents(events)
	return c.answer(out)
}

func showEvents(events []clientcfg.Event) []adminapi.AuditEntry {
	shown := make([]adminapi.AuditEntry, len(events))
	for i := range events {
		shown[i] = adminapi.ShowEvent(&events[i])
	}
	return shown
}

// auditTarget returns the target as it is in the trail. A username may be in any spelling. The user
// may be deleted.
func auditTarget(target string) string {
	typed, isUser := strings.CutPrefix(target, clientcfg.UserTarget(""))
	canonical, err := username.Canonical(typed)
	if !isUser || err != nil {
		return target
	}
	return clientcfg.UserTarget(canonical)
}
