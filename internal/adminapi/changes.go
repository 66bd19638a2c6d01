package adminapi

import (
	"encoding/json"
	"time"

	"oauth-server/internal/clientcfg"
)

// Set is everything that operators have set: what a file of limits has.
type Set struct {
	Version int64       `json:"version"` // of all policies
	Targets []SetTarget `json:"targets"` // in the order of a file
}

// SetTarget is what operators have set of one target.
type SetTarget struct {
	Target string          `json:"target"`
	Value  json.RawMessage `json:"value"` // as a change takes it; null: as in the configuration file
	// Until is when that ends by itself, and ReturnsTo what is set from then on.
	Until     time.Time       `json:"until,omitzero"`
	ReturnsTo json.RawMessage `json:"returns_to,omitempty"`
}

// Changes is a change of several targets.
type Changes struct {
	Changes []SetTarget `json:"changes"` // their targets and values
	For     string      `json:"for,omitempty"`
}

// Patches is a change of fields of several targets.
type Patches struct {
	Changes []TargetPatch `json:"changes"`
	For     string        `json:"for,omitempty"`
}

// TargetPatch changes fields of one target.
type TargetPatch struct {
	Target string         `json:"target"`
	Patch  map[string]any `json:"patch"` // a merge patch (RFC 7396) of what PATCH would change
}

// Changed is a change of several targets that was made, or would be.
type Changed struct {
	// Version is that of all policies after the change. If nothing was to be changed, it is that of before,
	// and there are no Changes.
	Version int64              `json:"version"`
	Until   time.Time          `json:"until,omitzero"`   // when the change ends by itself
	Changes []clientcfg.Change `json:"changes"`          // as the audit trail has them
	Effect  *Effect            `json:"effect,omitempty"` // with validate=true: nothing was changed
}
