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

// CompareTargets orders targets as in a file of limits.
func CompareTargets(a, b string) int {
	section := func(target string) int {
		kind, _, _ := strings.Cut(target, "/")
		return slices.Index(Sections, kind)
	}
	return cmp.Or(cmp.Compare(section(a), section(b)), cmp.Compare(a, b))
}

// Set is everything that operators have set: the content of a file of limits.
type Set struct {
	Version int64       `json:"version"`        // of all policies
	Targets []SetTarget `json:"targets"`        // in the order of a file
	Next    string      `json:"next,omitempty"` // the value of after for the next page
}

// SetTarget is the operators' value for one target.
type SetTarget struct {
	Target string          `json:"target"`
	Value  json.RawMessage `json:"value"` // in the form that a change takes; null: as in the configuration file
	// Until is the end of a temporary value, and ReturnsTo the value after that.
	Until     time.Time       `json:"until,omitzero"`
	ReturnsTo json.RawMessage `json:"returns_to,omitempty"`
}

// Changes is a change of several targets.
type Changes struct {
	Changes []SetTarget `json:"changes"` // their targets and values
	For     string      `json:"for,omitempty"`
}

// Changed is a change of several targets, made or validated.
type Changed struct {
	// Version is the version of all policies after the change. If nothing had to be changed, it is
	// the current version, and Changes is empty.
	Version int64           `json:"version"`
	Until   time.Time       `json:"until,omitzero"` // end of a temporary change
	Changes []ChangedTarget `json:"changes"`
	Effect  *Effect         `json:"effect,omitempty"` // with validate=true: nothing was changed
}

// ChangedTarget is the change of one target, as in the audit trail.
type ChangedTarget struct {
	clientcfg.Change
	Until    time.Time `json:"until,omitzero"`     // end of a temporary value
	WasUntil time.Time `json:"was_until,omitzero"` // end of the previous value, if temporary
}
