package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/adminapi"
)

func (l *limits) newInstances() *cobra.Command {
	return l.watched(&cobra.Command{
		Use: "instances", Short: "Show every instance, and whether it has the current limits", Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), l, "/instances", nil, l.instancesTable)
		},
	})
}

func (l *limits) instancesTable(page adminapi.Instances) error {
	rows := [][]string{{"INSTANCE", "HOST", "VERSION", "STARTED", "POLICIES", "FILE", "COUNTERS", "CLOCK"}}
	for _, i := range page.Instances {
		rows = append(rows, l.instanceRow(i))
	}
	return l.table(rows...)
}

func (l *limits) instanceRow(i adminapi.Instance) []string {
	policies := "current"
	switch {
	case i.Policies.LeftOut > 0:
		policies = fmt.Sprintf("%d left out: %s", i.Policies.LeftOut, i.Policies.Error)
	case i.Policies.Error != "":
		policies = l.alarming("not refreshed: "+i.Policies.Error, true)
	case !i.Policies.Current:
		policies = l.notable("behind, at "+strconv.FormatInt(i.Policies.Version, 10), true)
	}
	counters, clock := "its own", "-"
	if i.Sync != nil {
		counters = l.alarming(showCounting(i.Sync), i.Sync.Degraded || i.Sync.Outage)
		clock = l.notable(showClock(i.Sync), i.Sync.ClockAlone != "")
	}
	id := i.ID
	if i.Self {
		id += " *"
	}
	return []string{
		id, i.Host, i.Version, dateTime(i.StartedAt), policies, i.Policies.File[:min(8, len(i.Policies.File))], counters, clock,
	}
}

func showCounting(s *adminapi.SyncState) string {
	text := fmt.Sprintf("%d, %d to be shared", s.Keys, s.Dirty)
	if s.Degraded {
		text += ", the store fails"
	}
	if s.Outage {
		text += ", limits on outage"
	}
	return text
}

// showClock names the clock that disagrees, and by how much it is ahead of process
// time.
func showClock(s *adminapi.SyncState) string {
	wall, store := "wall "+showOffset(s.WallOffset), "store "+showOffset(s.StoreOffset)
	switch s.ClockAlone {
	case "":
		return "ok"
	case "wall":
		return wall
	case "store":
		return store
	default: // process time itself, or all of them
		return wall + ", " + store
	}
}

// showOffset writes an offset with its sign, to the tenth of a second.
func showOffset(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond)
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}
