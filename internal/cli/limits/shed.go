package limits

import (
	"slices"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/limiter/activity"
)

// shedHeading is the heading of the columns that shed returns.
var shedHeading = []string{"SHED", "WOULD SHED"}

// shed returns how many requests of a client were refused because of overload, or would have been.
func (l *limits) shed(c *activity.Counts) []string {
	return []string{l.Alarming(command.Number(c.Shed), c.Shed > 0), l.Notable(command.Number(c.WouldShed), c.WouldShed > 0)}
}

// anyShed reports whether any request was shed, or would have been. Tables have these columns only
// then.
func anyShed(clients []adminapi.ClientCounts) bool {
	return slices.ContainsFunc(clients, func(c adminapi.ClientCounts) bool { return c.Shed+c.WouldShed > 0 })
}

// shedTable shows the clients with shed requests, beside the number of requests that the limiter
// decided.
func (l *limits) shedTable(top adminapi.Top) error {
	rows := [][]string{append([]string{"CLIENT", "DECIDED BY LIMITS"}, shedHeading...)}
	for i := range top.Talkers {
		c := &top.Talkers[i]
		rows = append(rows, append([]string{c.ClientID, command.Number(c.Total())}, l.shed(&c.Counts)...))
	}
	if len(rows) == 1 {
		l.Note("No request of a client was refused because the server was overloaded.")
	} else if err := l.Table(rows...); err != nil {
		return err
	}
	return l.period(top.Since)
}
