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
	Next    string      `json:"next,omitempty"` // value of after for the next page
}

// SetTarget is the operators' value for one target.
type SetTarget struct {
	Target    string          `json:"target" schema:"required"` // settings, tiers/…, policies/…, overrides/… or candidates/…
	Value     json.RawMessage `json:"value" schema:"required"`  // in the form that a change takes; null: as in the configuration file
	Until     time.Time       `json:"until,omitzero"`           // end of a temporary value; absent: permanent
	ReturnsTo json.RawMessage `json:"returns_to,omitempty"`     // the value after that
}

// Changes is a change of several targets.
type Changes struct {
	Changes []SetTarget `json:"changes" schema:"required,minItems=1,maxItems=10000"`
	For     string      `json:"for,omitempty"` // how long the change lasts, from 1m to 30d: 90m, 2h, 7d
}

// Changed is a change of several targets, made or validated.
type Changed struct {
	// Of all policies after the change. If nothing had to be changed, it is the current version,
	// and changes is empty.
	Version int64           `json:"version"`
	Until   time.Time       `json:"until,omitzero"` // end of a temporary change; absent: permanent
	Changes []ChangedTarget `json:"changes"`
	Effect  *Effect         `json:"effect,omitempty"` // with validate=true: nothing was changed
}

// ChangedTarget is the change of one target, as in the audit trail.
type ChangedTarget struct {
	clientcfg.Change
	Until    time.Time `json:"until,omitzero"`     // end of a temporary value; absent: permanent
	WasUntil time.Time `json:"was_until,omitzero"` // end of the former value; absent: permanent
}
