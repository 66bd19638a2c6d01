package clientcfg

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Errors that a [PolicyStore] returns, possibly wrapped.
var (
	// ErrPolicyConflict: the stored set is no longer the one that was changed.
	ErrPolicyConflict = errors.New("clientcfg: the policies were changed meanwhile")
	// ErrUnreadable: the stored document is no policy set of this release.
	ErrUnreadable = errors.New("clientcfg: the stored policies cannot be read")
)

// PolicyStore keeps the policy set and the audit trail of its changes.
// Implementations MUST be safe for concurrent use, MUST make a change durable
// before they return nil, and MUST return the errors above (wrapped is fine)
// for the cases they name.
type PolicyStore interface {
	// PolicySet returns the stored set, the zero set if there never was a change.
	// ErrUnreadable if it does not decode or has unknown fields: a newer release wrote it,
	// and a part of it must not be applied.
	PolicySet(ctx context.Context) (PolicySet, error)
	// PolicyVersion returns the version of the stored set, cheaply.
	PolicyVersion(ctx context.Context) (int64, error)
	// ReplacePolicySet stores next together with the audit entry of the change: both or
	// neither. next.Version is one more than that of the set that was changed, and
	// entry.Version is the same. ErrPolicyConflict if the stored set has another version
	// meanwhile. If the reply of the database is lost, the implementation finds out by
	// entry.ID, which is unique, whether the change was made before it returns.
	ReplacePolicySet(ctx context.Context, next PolicySet, entry AuditEntry) error
}

// ErrNoWatch is returned by a [PolicyWatcher] that cannot watch.
var ErrNoWatch = errors.New("clientcfg: this store does not report changes")

// PolicyWatcher is a [PolicyStore] that may be able to report changes, so that they need
// not wait for the next refresh.
type PolicyWatcher interface {
	// WatchPolicies calls changed after changes of the stored set, until ctx ends. It may
	// call too often, or miss changes, which polling finds. ErrNoWatch, at once, if the
	// store cannot do it; any other error means that the watch broke off.
	WatchPolicies(ctx context.Context, changed func()) error
}

// AuditLog reads the audit trail. An entry cannot be changed.
type AuditLog interface {
	// Audit returns the entries that match, the newest first.
	Audit(ctx context.Context, q AuditQuery) ([]AuditEntry, error)
	// SweepAudit removes entries from before that time, and returns how many.
	SweepAudit(ctx context.Context, before time.Time) (int, error)
}

// AuditQuery chooses entries. Zero fields choose all.
type AuditQuery struct {
	Target string // exactly, such as policies/shop
	Before int64  // only entries of lower versions
	Limit  int    // at most so many; 0 for no bound
}

// AuditEntry is one change: who changed what. Its Version is that of the policy set after
// the change, so entries are numbered without a gap.
type AuditEntry struct {
	Version  int64     `json:"version"`
	ID       string    `json:"id"` // random; identifies the change after a lost reply
	At       time.Time `json:"at"` // UTC, whole milliseconds
	Actor    Actor     `json:"actor"`
	Action   string    `json:"action"`
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	Instance string    `json:"instance,omitempty"` // that served the request
	// Before and After are the resource as in the admin API; null if there was or is none.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Actor is who made a change.
type Actor struct {
	ClientID string `json:"client_id"`
	Username string `json:"username,omitempty"` // empty if the client acted for itself
	Address  string `json:"address,omitempty"`
}
