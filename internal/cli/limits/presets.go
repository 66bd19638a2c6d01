package limits

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/limiter/preset"
)

func (l *limits) newPresets() *cobra.Command {
	return &cobra.Command{
		Use: "presets", Short: "List limits that well-known providers publish", Args: command.Takes(),
		Long: `List the token request limits that well-known providers publish, with the source of each.

Apply one with "limits set CLIENT --preset NAME" or "limits set --tier TIER --preset NAME". This
copies the limits; the client or tier keeps no reference to the preset.`,
		Example: `  oauth-server limits presets
  oauth-server limits presets -o json
  oauth-server limits set --tier partners --preset okta`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), l, "/presets", nil, func(p adminapi.Presets) error {
				rows := [][]string{{"PRESET", "USER LIMITS", "CLIENT LIMITS", sharedHeading, "ABOUT"}}
				for _, one := range p.Presets {
					rows = append(rows, []string{one.Name, syntax.ShowLimits(one.User), syntax.ShowLimits(one.Client), showShared(one.Total, nil), one.About}, []string{"", "", "", "", one.Page})
				}
				return l.Table(withoutEmpty(rows)...)
			})
		},
	}
}

// preset returns the preset of that name.
func (l *limits) preset(ctx context.Context, name string) (p preset.Preset, err error) {
	all, err := get[adminapi.Presets](ctx, l, "/presets", nil)
	if err != nil {
		return p, err
	}
	var names []string
	for _, p := range all.Presets {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return p, command.Usagef("--preset: %q is not one of %s", name, strings.Join(names, ", "))
}
