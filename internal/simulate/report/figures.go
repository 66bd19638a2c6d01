package report

import (
	"fmt"
	"time"

	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/chart"
	"oauth-server/internal/simulate/traffic"
)

// Sentence returns the result in one sentence.
func Sentence(r *simulate.Result) string {
	if r.From.IsZero() {
		return "No request would be counted by a limit."
	}
	n, refused := r.Total.Refused(), "none is refused"
	if n > 0 {
		refused = fmt.Sprintf("%s refused, of %s and %s", counted(n, "is", "are"),
			counted(r.ClientsHit, "client", "clients"), About(r.UsersHit, r.UsersEstimated)+map[bool]string{true: " user", false: " users"}[r.UsersHit == 1])
	}
	return fmt.Sprintf("Of %s of %s, from %s to %s, %s under %s.", counted(r.Total.Requests, "request", "requests"),
		counted(r.ClientCount, "client", "clients"), r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), refused, printable(r.Under))
}

// headlines returns the figures at the top. Zero figures are left out, except the ones that every
// reader looks for.
func headlines(r *simulate.Result) []figure {
	t := &r.Total
	all := []figure{
		{Name: "Requests", Value: chart.Count(t.Requests)},
		{Name: "Refused", Value: chart.Count(t.Refused()), Note: Percent(t.RefusedShare()), Alarm: t.Refused() > 0},
		{
			Name: "Clients hit", Value: chart.Count(r.ClientsHit), Alarm: r.ClientsHit > 0,
			Note: fmt.Sprintf("of %s, %s", chart.Count(r.ClientCount), Percent(simulate.Share(uint64(r.ClientsHit), uint64(r.ClientCount)))), //nolint:gosec // G115: not negative
		},
		{Name: "Users hit", Value: About(r.UsersHit, r.UsersEstimated), Alarm: r.UsersHit > 0},
	}
	for _, f := range []struct {
		name, note string
		n          uint64
	}{
		{"Banned", "of the refused", t.Banned},
		{"Delayed", "admitted after waiting", t.Delayed},
		{"Reused", "got their last token again", t.Reused},
		{"Failed", "for another reason; not counted", t.Failed},
	} {
		if f.n > 0 {
			all = append(all, figure{Name: f.name, Value: chart.Count(f.n), Note: f.note})
		}
	}
	return append(all, figure{
		Name: "Waste", Value: Percent(t.WastedShare()), Note: "of new tokens: an equal one had half its lifetime left",
	})
}

// lines returns the figures about reading the log.
func lines(l *traffic.Lines) []figure {
	all := l.Read + l.Skipped + l.Unread
	figures := []figure{
		{Name: "Token requests", Value: chart.Count(l.Read), Note: Percent(simulate.Share(l.Read, all))},
		{Name: "Skipped", Value: chart.Count(l.Skipped), Note: "not token requests"},
		{Name: "Unread", Value: chart.Count(l.Unread), Note: Percent(simulate.Share(l.Unread, all)), Alarm: l.Unread > 0},
	}
	if l.Reordered > 0 {
		figures = append(figures, figure{Name: "Reordered", Value: chart.Count(l.Reordered), Note: "out of order in the log"})
	}
	return figures
}
