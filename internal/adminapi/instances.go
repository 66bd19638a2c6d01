package adminapi

import (
	"time"

	"oauth-server/internal/activity"
)

// Instances is every process that is alive.
type Instances struct {
	Instances []Instance `json:"instances"`
}

// Instance is one process.
type Instance struct {
	ID        string          `json:"id"`
	Host      string          `json:"host"`
	Version   string          `json:"version"`
	StartedAt time.Time       `json:"started_at"`
	SeenAt    time.Time       `json:"seen_at"`
	Self      bool            `json:"self"` // it gave this answer
	Policies  PoliciesInForce `json:"policies"`
	Sync      *SyncState      `json:"sync"` // null: it does not share its counts
	File      ConfigFile      `json:"configuration_file"`
}

// ConfigFile is what became of a configuration file, which may change while the server runs.
type ConfigFile struct {
	ReadAt time.Time `json:"read_at"` // when what is in use was read
	// RestartNeeded are fields that have changed and take effect at the next start.
	RestartNeeded []string `json:"restart_needed,omitempty"`
	Error         string   `json:"error,omitempty"` // why the newest content is not in use
	// ErrorCode is the error_code of a 429: with different ones, clients get answers that depend on whom they ask.
	ErrorCode string `json:"error_code"`
}

// PoliciesInForce is how fresh an instance's policies are.
type PoliciesInForce struct {
	Version int64 `json:"version"`
	Current bool  `json:"current"` // it is the newest that any instance has, and all of it is in force
	// LeftOut is how many targets are not as in that version, because the instance cannot use that: they
	// have an older value or that of the configuration file.
	LeftOut   int       `json:"left_out,omitempty"`
	CheckedAt time.Time `json:"checked_at"`
	// File is a digest of the limits in the configuration file: instances with different
	// files do not agree on what applies.
	File  string `json:"file"`
	Error string `json:"error,omitempty"`
}

// SyncState is how a process shares its counts with the others.
type SyncState struct {
	Keys     int64 `json:"keys"`     // counters in memory
	Dirty    int64 `json:"dirty"`    // of them not yet written
	Degraded bool  `json:"degraded"` // the store does not take or give counts as it should
	Outage   bool  `json:"outage"`   // limits are decided by their on_outage

	StaleMillis       int64 `json:"stale_ms"`       // age of the oldest count that should have been refreshed
	UnconfirmedMillis int64 `json:"unconfirmed_ms"` // age of the oldest write that is not confirmed

	// ClockAlone is the clock that disagrees with the others by over a second: wall,
	// store, process, all; empty for none. See package clock.
	ClockAlone  string  `json:"clock_alone,omitempty"`
	WallOffset  float64 `json:"wall_offset_s"`  // by which the wall clock is ahead of process time, seconds
	StoreOffset float64 `json:"clock_offset_s"` // by which the store's clock is
}

// Report is what an instance adds to its heartbeat, so that every other can answer for
// it. It is stored with the heartbeat and read by other releases.
type Report struct {
	Instance Instance        `json:"instance"`
	Activity activity.Report `json:"activity"`
	Top      []Counter       `json:"top"`
}
