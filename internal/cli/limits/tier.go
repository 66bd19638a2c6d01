package limits

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/limits/syntax"
)

// tierFlag names a tier: the one of CLIENT or, without CLIENT, the tier that a command is about.
const tierFlag = "tier"

func (l *limits) registerTier(cmd *cobra.Command, name *string, usage string) {
	cmd.Flags().StringVar(name, tierFlag, "", usage)
}

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

// noTier replaces the error for a tier that does not exist. name is empty if err is not about a tier.
func noTier(name string, err error) error {
	if name != "" && notFound(err) {
		return fmt.Errorf("tier %q does not exist", name)
	}
	return err
}
