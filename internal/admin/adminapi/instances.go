package adminapi

import (
	"time"

	"oauth-server/internal/limiter/activity"
)

// Instances are all live processes.
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
	Self      bool            `json:"self"` // the instance that answers
	Policies  PoliciesInForce `json:"policies"`
	Sync      *SyncState      `json:"sync"`               // null: it does not share its counts
	File      ConfigFile      `json:"configuration_file"` // its configuration file, which may change while it runs
}

// ConfigFile is the state of a configuration file, which may change while the server runs.
type ConfigFile struct {
	ReadAt time.Time `json:"read_at"` // when the configuration in use was read
	// changed fields that take effect at the next start
	RestartNeeded []string `json:"restart_needed,omitempty"`
	Error         string   `json:"error,omitempty"` // reason why the newest content is not in use
	// The error_code of a 429. If it differs between instances, clients get different answers from
	// them.
	ErrorCode string `json:"error_code"`
}

// PoliciesInForce describes the policies of an instance.
type PoliciesInForce struct {
	Version int64 `json:"version"`
	Current bool  `json:"current"` // it is the newest version of any instance, and fully in force
	// Targets that differ from that version because the instance cannot use their values. They
	// keep an older value or the value of the configuration file.
	LeftOut   int       `json:"left_out,omitempty"`
	CheckedAt time.Time `json:"checked_at"`
	// Digest of the limits in the configuration file. Instances with different files enforce
	// different limits.
	File  string `json:"file"`
	Error string `json:"error,omitempty"`
}

// SyncState describes how a process shares its counts with the others.
type SyncState struct {
	Keys     int64 `json:"keys"`     // counters in memory
	Dirty    int64 `json:"dirty"`    // counters not yet written
	Degraded bool  `json:"degraded"` // the store fails to accept or return counts as it should
	Outage   bool  `json:"outage"`   // limits follow their on_outage

	StaleMillis       int64 `json:"stale_ms"`       // age of the oldest count due for a refresh
	UnconfirmedMillis int64 `json:"unconfirmed_ms"` // age of the oldest unconfirmed write

	// The clock that differs from the others by over a second: wall, store, process or all.
	ClockAlone  string  `json:"clock_alone,omitempty"`
	WallOffset  float64 `json:"wall_offset_s"`  // seconds that the wall clock is ahead of process time
	StoreOffset float64 `json:"clock_offset_s"` // seconds that the store's clock is ahead of process time
}

// Report is the data that an instance adds to its heartbeat, which lets every other instance answer
// for it. It is stored with the heartbeat and read by other releases.
type Report struct {
	Instance Instance        `json:"instance"`
	Activity activity.Report `json:"activity"`
	Top      []Counter       `json:"top"`
}
