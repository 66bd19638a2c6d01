package adminclient

import (
	"encoding/json"
	"time"
)

// The documents of the API, as far as the command line shows them.

// Limit is one limit.
type Limit struct {
	Name      string  `json:"name,omitempty"`
	Requests  int64   `json:"requests"`
	Window    string  `json:"window"`
	Frames    int64   `json:"frames,omitempty"`
	Algorithm string  `json:"algorithm,omitempty"`
	SoftRatio float64 `json:"soft_ratio,omitempty"`
	OnOutage  string  `json:"on_outage,omitempty"`
}

// Settings is what holds for all clients.
type Settings struct {
	Mode          string  `json:"mode"`
	CanaryPercent float64 `json:"canary_percent"`
	Default       struct {
		User        []Limit `json:"user"`
		Client      []Limit `json:"client"`
		HideHeaders bool    `json:"hide_headers"`
	} `json:"default"`
	Note string `json:"note"`
	Meta struct {
		Changed []string `json:"changed"`
	} `json:"meta"`
}

// Effective is what applies to a client.
type Effective struct {
	Mode        string  `json:"mode"`
	Trusted     bool    `json:"trusted"`
	User        []Limit `json:"user"`
	Client      []Limit `json:"client"`
	HideHeaders bool    `json:"hide_headers"`
}

// Policy is the policy of one client.
type Policy struct {
	ClientID    string    `json:"client_id"`
	Trusted     bool      `json:"trusted"`
	Mode        string    `json:"mode"`
	User        []Limit   `json:"user"`
	Client      []Limit   `json:"client"`
	HideHeaders bool      `json:"hide_headers"`
	Note        string    `json:"note"`
	Effective   Effective `json:"effective"`
	Meta        struct {
		Source string `json:"source"`
	} `json:"meta"`
}

// Counts says what became of requests.
type Counts struct {
	Allowed            uint64 `json:"allowed"`
	Denied             uint64 `json:"denied"`
	WouldDeny          uint64 `json:"would_deny"`
	Trusted            uint64 `json:"trusted"`
	Off                uint64 `json:"off"`
	Tried              uint64 `json:"tried"`
	CandidateWouldDeny uint64 `json:"candidate_would_deny"`
}

// Total is the number of requests.
func (c Counts) Total() uint64 { return c.Allowed + c.Denied + c.WouldDeny + c.Trusted + c.Off }

// ClientCounts is what became of one client's requests.
type ClientCounts struct {
	ClientID string `json:"client_id"`
	Counts
}

// Candidate is a candidate with what came of it.
type Candidate struct {
	ClientID string    `json:"client_id"`
	User     []Limit   `json:"user"`
	Client   []Limit   `json:"client"`
	Note     string    `json:"note"`
	Since    time.Time `json:"since"`
	Activity struct {
		Since time.Time `json:"since"`
		Counts
		Clients []ClientCounts `json:"clients"`
	} `json:"activity"`
}

// RegisteredClient is a client with what applies to it and what it did.
type RegisteredClient struct {
	ClientID  string    `json:"client_id"`
	Source    string    `json:"source"`
	Admin     bool      `json:"admin"`
	Candidate bool      `json:"candidate"`
	Effective Effective `json:"effective"`
	Activity  Counts    `json:"activity"`
}

// Counter is one live counter.
type Counter struct {
	ClientID  string     `json:"client_id"`
	Username  *string    `json:"username"`
	Candidate bool       `json:"candidate"`
	Limit     Limit      `json:"limit"`
	Known     int64      `json:"g"`
	InFlight  int64      `json:"i"`
	Estimate  float64    `json:"estimate"`
	Usage     float64    `json:"usage"`
	FreeAt    *time.Time `json:"free_at"`
}

// Top is who asks the most, and who is near a limit.
type Top struct {
	Since     time.Time      `json:"since"`
	Talkers   []ClientCounts `json:"talkers"`
	NearLimit []Counter      `json:"near_limit"`
}

// AuditEntry is one change.
type AuditEntry struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	Actor   struct {
		ClientID string `json:"client_id"`
		Username string `json:"username"`
	} `json:"actor"`
	Action string          `json:"action"`
	Target string          `json:"target"`
	Reason string          `json:"reason"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Instance is one process.
type Instance struct {
	ID        string    `json:"id"`
	Host      string    `json:"host"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
	Self      bool      `json:"self"`
	Policies  struct {
		Version int64  `json:"version"`
		Current bool   `json:"current"`
		File    string `json:"file"`
		Error   string `json:"error"`
	} `json:"policies"`
	Sync *SyncState `json:"sync"` // nil: its counts are its own
}

// SyncState is how a process shares its counts.
type SyncState struct {
	Keys     int64 `json:"keys"`
	Dirty    int64 `json:"dirty"`
	Degraded bool  `json:"degraded"`
	Outage   bool  `json:"outage"`
	// ClockAlone is the clock that disagrees with the others: wall, store,
	// process, all; empty for none. The offsets are seconds ahead of process time.
	ClockAlone  string  `json:"clock_alone"`
	WallOffset  float64 `json:"wall_offset_s"`
	StoreOffset float64 `json:"clock_offset_s"`
}

// Rehearsal is what would come of a change.
type Rehearsal struct {
	Effect struct {
		Widens  bool   `json:"widens"`
		Summary string `json:"summary"`
	} `json:"effect"`
}
