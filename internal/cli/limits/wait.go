package limits

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/limiter/activity"

	"github.com/spf13/cobra"
)

// The flags for delaying requests over the limit.
const (
	maxWaitFlag    = "max-wait"
	maxWaitingFlag = "max-waiting"
)

func registerWait(cmd *cobra.Command) {
	cmd.Flags().String(maxWaitFlag, "", "how long a request over the limit waits for its turn at most, such as 2s; 0 for not at all")
	cmd.Flags().String(maxWaitingFlag, "", "with --"+maxWaitFlag+": how many of one key wait at once (default 10)")
}

// waitInto sets the fields max_wait and max_waiting of doc, if their flags are given. Removing
// max_wait also removes max_waiting, which has no meaning without it.
func waitInto(cmd *cobra.Command, doc map[string]any) error {
	if flag := cmd.Flags().Lookup(maxWaitFlag); flag.Changed {
		d, err := time.ParseDuration(flag.Value.String())
		if err != nil {
			return command.Usagef("--%s: %q is no duration with its unit, such as 2s, nor 0", maxWaitFlag, flag.Value.String())
		}
		doc["max_wait"] = d.String()
		if d == 0 {
			doc["max_waiting"] = nil
		}
	}
	if flag := cmd.Flags().Lookup(maxWaitingFlag); flag.Changed {
		n, err := strconv.Atoi(flag.Value.String())
		if err != nil {
			return command.Usagef("--%s: %q is no whole number", maxWaitingFlag, flag.Value.String())
		}
		doc["max_waiting"] = n
	}
	return nil
}

// waitsOf returns the waits in force for a client. If no request waits, it includes the max_wait of
// the client, or else of its tier.
func waitsOf(effective, client, tier adminapi.Waits) adminapi.Waits {
	if effective.MaxWait == "" {
		effective.MaxWait = cmp.Or(client.MaxWait, tier.MaxWait)
	}
	return effective
}

// waitRow describes how requests over the limit wait, if set.
func waitRow(w adminapi.Waits, from string) [][]string {
	if w.MaxWait == "" {
		return nil
	}
	text := w.MaxWait
	if w.MaxWaiting > 0 {
		text += ", " + strconv.Itoa(w.MaxWaiting) + " at once"
	}
	return [][]string{{"max wait", text, from}}
}

// anyDelayed reports whether any request waited in the queue, or would have. Tables have these
// columns only then.
func anyDelayed(clients []adminapi.ClientCounts) bool {
	return slices.ContainsFunc(clients, func(c adminapi.ClientCounts) bool { return c.Delayed+c.WouldDelay > 0 })
}

// delayedRows returns how many requests waited in the queue while a candidate was tried, if any.
func delayedRows(c *activity.Counts) [][]string {
	if c.CandidateWouldDelay+c.Delayed+c.WouldDelay == 0 {
		return nil
	}
	return [][]string{
		{"  it would have had wait for their turn", command.Number(c.CandidateWouldDelay)},
		{"  delayed under the live limits", command.Number(c.Delayed)},
		{"  in dry-run, would have been", command.Number(c.WouldDelay)},
	}
}

// ofDefault are the unsettable fields that the settings have below default.
var ofDefault = []string{"user", "client", "total", "source", overLimitFlag, maxWaitFlag, maxWaitingFlag, banFlag, criticalityFlag, "hide-headers"}

// takeBack removes a field and its dependent fields.
func takeBack(patch map[string]any, field string) {
	patch[strings.ReplaceAll(field, "-", "_")] = nil
	if field == maxWaitFlag {
		patch["max_waiting"] = nil
	}
}
