package limits

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
)

func (l *limits) newStatus() *cobra.Command {
	var hash string
	cmd := &cobra.Command{
		Use: "status", Short: "Show every instance, and whether it has the current limits", Args: command.Takes(),
		Long: `Show every instance: whether it has the current limits and the same configuration file as the
others, and how it shares its counts.

With --hash, show the user_hash of a user in the access log. It is the same on all instances and
after restarts.`,
		Example: `  oauth-server limits status --watch
  grep "user_hash=$(oauth-server limits status --hash ada)" server.log`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if hash == "" {
				return show(cmd.Context(), l, "/instances", nil, l.instancesTable)
			}
			return show(cmd.Context(), l, "/user-hash", url.Values{"username": {hash}}, func(h adminapi.UserHash) error {
				_, err := fmt.Fprintln(l.Out, h.UserHash)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&hash, "hash", "", "show only the user_hash of this user in the access log")
	return l.watched(cmd)
}

func (l *limits) instancesTable(page adminapi.Instances) error {
	rows := [][]string{{"INSTANCE", "HOST", "VERSION", "STARTED", "POLICIES", "FILE", "COUNTERS", "CLOCK"}}
	for _, i := range page.Instances {
		rows = append(rows, l.instanceRow(i))
	}
	if err := l.Table(rows...); err != nil {
		return err
	}
	if text := disagreement(page.Instances); text != "" {
		_, err := fmt.Fprintln(l.Out, "\n"+l.Alarming(text, true))
		return err
	}
	return nil
}

// shortDigest is the number of digits shown of a file's digest.
const shortDigest = 8

// disagreement says which instances have which limits and which error_code in their configuration
// files; empty if all agree.
func disagreement(all []adminapi.Instance) string {
	limits, codes := map[string][]string{}, map[string][]string{}
	for _, i := range all {
		digest := i.Policies.File[:min(shortDigest, len(i.Policies.File))]
		limits[digest] = append(limits[digest], i.ID)
		codes[i.File.ErrorCode] = append(codes[i.File.ErrorCode], i.ID)
	}
	var texts []string
	for about, with := range map[string]map[string][]string{"limits": limits, "values of rate_limit.error_code": codes} {
		if len(with) > 1 {
			texts = append(texts, "The "+about+" in the configuration files differ: "+whoHas(with)+".")
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

// whoHas lists the instances grouped by value.
func whoHas(with map[string][]string) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(with)) {
		parts = append(parts, what+" at "+strings.Join(with[what], ", "))
	}
	return strings.Join(parts, "; ")
}

// fileState shows the digest of an instance's file and any problem with it.
func (l *limits) fileState(i adminapi.Instance) string {
	text := i.Policies.File[:min(shortDigest, len(i.Policies.File))]
	switch {
	case i.File.Error != "":
		text = l.Alarming(text+", the newest is invalid: "+i.File.Error, true)
	case len(i.File.RestartNeeded) > 0:
		text = l.Notable(text+", restart needed for "+strings.Join(i.File.RestartNeeded, ", "), true)
	}
	return text
}

func (l *limits) instanceRow(i adminapi.Instance) []string {
	policies := "current"
	switch {
	case i.Policies.LeftOut > 0:
		policies = fmt.Sprintf("%d left out: %s", i.Policies.LeftOut, i.Policies.Error)
	case i.Policies.Error != "":
		policies = l.Alarming("not refreshed: "+i.Policies.Error, true)
	case !i.Policies.Current:
		policies = l.Notable("behind, at "+strconv.FormatInt(i.Policies.Version, 10), true)
	}
	counters, clock := "its own", "-"
	if i.Sync != nil {
		counters = l.Alarming(showCounting(i.Sync), i.Sync.Degraded || i.Sync.Outage)
		clock = l.Notable(showClock(i.Sync), i.Sync.ClockAlone != "")
	}
	id := i.ID
	if i.Self {
		id += " *"
	}
	return []string{
		id, i.Host, i.Version, command.DateTime(i.StartedAt), policies, l.fileState(i), counters, clock,
	}
}

func showCounting(s *adminapi.SyncState) string {
	text := fmt.Sprintf("%d, %d not shared yet", s.Keys, s.Dirty)
	if s.Degraded {
		text += ", the store fails"
	}
	if s.Outage {
		text += ", on_outage applies"
	}
	return text
}

// showClock names the clock that disagrees and how far it is ahead of process time.
func showClock(s *adminapi.SyncState) string {
	wall, store := "wall "+showOffset(s.WallOffset), "store "+showOffset(s.StoreOffset)
	switch s.ClockAlone {
	case "":
		return "ok"
	case "wall":
		return wall
	case "store":
		return store
	default: // process time itself, or all clocks
		return wall + ", " + store
	}
}

// showOffset writes an offset with its sign, to a tenth of a second.
func showOffset(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond)
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}
