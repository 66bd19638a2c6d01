package limits

import (
	"slices"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/ratelimit"

	"github.com/spf13/cobra"
)

// criticalityFlag sets which requests are refused first while the server is overloaded, one of
// criticalities.
const criticalityFlag = "criticality"

var criticalities = ratelimit.CriticalityNames()

// RegisterCriticality adds --criticality to a command.
func RegisterCriticality(cmd *cobra.Command) {
	cmd.Flags().String(criticalityFlag, "", "when its requests are refused while the server is overloaded, from last to first: "+
		strings.Join(criticalities, ", ")+" (default by the kind of request)")
	command.InTopic(command.LimitsTopic, cmd.Flags(), criticalityFlag)
}

// criticalityInto sets the field criticality of doc, if the flag is given.
func criticalityInto(cmd *cobra.Command, doc map[string]any) error {
	flag := cmd.Flags().Lookup(criticalityFlag)
	if !flag.Changed {
		return nil
	}
	value := flag.Value.String()
	if !slices.Contains(criticalities, value) {
		return command.Usagef("--%s: %q is none of %s", criticalityFlag, value, strings.Join(criticalities, ", "))
	}
	doc["criticality"] = value
	return nil
}
