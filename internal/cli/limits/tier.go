package limits

import (
	"context"
	"net/url"
	"strconv"

	"oauth-server/internal/cli/limits/syntax"
)

// listTiers writes the tiers, with how many clients have each.
func (l *limits) listTiers(ctx context.Context) error {
	all, err := pages[document[view]](ctx, l, "/tiers", url.Values{})
	if err != nil {
		return err
	}
	rows := [][]string{{"TIER", "MODE", "USER LIMITS", "CLIENT LIMITS", sharedHeading, "CLIENTS", "NOTE"}}
	for i := range all {
		t := &all[i].Value
		rows = append(rows, []string{
			t.Name + untilTime(t.Meta.Until), orNone(t.Mode), syntax.ShowLimits(t.User), syntax.ShowLimits(t.Client), showShared(t.Total, t.Source), strconv.Itoa(t.Clients), t.Note,
		})
	}
	return l.List(map[string]any{"tiers": all}, withoutEmpty(rows)...)
}
