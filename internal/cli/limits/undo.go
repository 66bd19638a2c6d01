package limits

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
)

func (l *limits) newUndo() *cobra.Command {
	return l.confirmed(&cobra.Command{
		Use: "undo CHANGE", Short: "Restore the values from before a change", Args: command.Takes("CHANGE"),
		Long: `Restore the values from before a change. CHANGE is its number in "limits audit".

If one of them was changed again later, the command fails and names the later change. An undo is
a change too, so you can undo it. You cannot undo a reset of counters.

Undoing a temporary change also removes its end. A temporary value that would have ended in the
meantime is not restored.`,
		Example: "  oauth-server limits undo 12 --check\n  oauth-server limits undo 12 --reason \"wrong client\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := strconv.ParseUint(args[0], 10, 63)
			if err != nil || version == 0 {
				return command.Usagef("limits undo: %q is not the number of a change; limits audit shows the numbers", args[0])
			}
			return l.performMany(cmd.Context(), adminclient.Change{
				Method: http.MethodPost, Path: fmt.Sprintf("/changes/%d/undo", version), ETag: "*",
			}, fmt.Sprintf("Change %d is undone", version))
		},
	})
}

// changedRows returns the changes of several targets as table rows.
func (l *limits) changedRows(changed *adminapi.Changed) [][]string {
	rows := [][]string{{"TARGET", "CHANGE"}}
	for i := range changed.Changes {
		c := &changed.Changes[i]
		end := untilTime(c.Until)
		if !changed.Until.IsZero() { // starts with the change, which is not made yet
			end = forTime(l.lasts)
		}
		rows = append(rows, []string{c.Target + end, changedText(c)})
	}
	return rows
}

// changedText says what a target's new value and end are.
func changedText(c *adminapi.ChangedTarget) string {
	what := differences(c.Before, c.After)
	if syntax.IsNull(c.After) {
		what = "removed (" + differences(c.After, c.Before) + ")"
	}
	end := "was until " + command.DateTime(c.WasUntil)
	switch {
	case c.WasUntil.IsZero() || c.WasUntil.Equal(c.Until):
		return what
	case c.Until.IsZero() && !syntax.IsNull(c.After):
		end = "lasts (" + end + ")"
	}
	if what == noDifference {
		return end
	}
	return what + "; " + end
}
