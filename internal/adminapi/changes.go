package adminapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
)

// Sections are the kinds of targets that operators set, in the order of a file of limits.
var Sections = []string{"settings", "tiers", "policies", "overrides", "candidates"}

// CompareTargets orders targets as a file of limits has them.
func CompareTargets(a, b string) int {
	section := func(target string) int {
		kind, _, _ := strings.Cut(target, "/")
		return slices.Index(Sections, kind)
	}
	return cmp.Or(cmp.Compare(section(a), section(b)), cmp.Compare(a, b))
}

// Set is everything that operators have set: what a file of limits has.
type Set struct {
	Version int64       `json:"version"`        // of all policies
	Targets []SetTarget `json:"targets"`        // in the order of a file
	Next    string      `json:"next,omitempty"` // the value of after for the next page
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
	Version int64           `json:"version"`
	Until   time.Time       `json:"until,omitzero"` // when the change ends by itself
	Changes []ChangedTarget `json:"changes"`
	Effect  *Effect         `json:"effect,omitempty"` // with validate=true: nothing was changed
}

// ChangedTarget is what a change made of one target, as the audit trail has it.
type ChangedTarget struct {
	clientcfg.Change
	Until    time.Time `json:"until,omitzero"`     // when that ends by itself
	WasUntil time.Time `json:"was_until,omitzero"` // when what it was before would have ended by itself
}
