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
	// ErrUnreadable: what is stored is not a policy set of this release.
	ErrUnreadable = errors.New("clientcfg: the stored policies cannot be read")
)

// PolicyStore keeps the policy set and the trail of its changes.
// Implementations MUST be safe for concurrent use, MUST make a change durable
// before they return nil, and MUST return the errors above (wrapped is fine)
// for the cases they name.
type PolicyStore interface {
	// PolicySet returns the stored set, the zero set if there never was a
	// change. ErrUnreadable if it does not decode, unknown fields included:
	// a newer release wrote it, and half of it must not be applied.
	PolicySet(ctx context.Context) (PolicySet, error)
	// PolicyVersion returns the version of the stored set, cheaply.
	PolicyVersion(ctx context.Context) (int64, error)
	// ReplacePolicySet stores next, together with the entry that tells of the
	// change: both or neither. next.Version is one more than that of the set
	// that was changed, and entry.Version is the same. ErrPolicyConflict if
	// the stored set has another version meanwhile. Where the answer of the
	// database got lost, the implementation finds out by entry.ID, which no
	// other change has, what became of the change before it returns.
	ReplacePolicySet(ctx context.Context, next PolicySet, entry AuditEntry) error
}

// ErrNoWatch is returned by a [PolicyWatcher] that cannot watch.
var ErrNoWatch = errors.New("clientcfg: this store does not tell of changes")

// PolicyWatcher is a [PolicyStore] that may be able to tell of changes, so that
// they need not wait for the next look.
type PolicyWatcher interface {
	// WatchPolicies calls changed after changes of the stored set, until ctx
	// ends. A call too many does no harm, and one too few is made up for by
	// polling. ErrNoWatch, at once, if the store cannot do it; any other
	// error says that it broke off.
	WatchPolicies(ctx context.Context, changed func()) error
}

// AuditLog reads the trail. There is no way to change an entry.
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

// AuditEntry says who changed what. Its Version is that of the policy set
// which the change made: entries are numbered without a gap.
type AuditEntry struct {
	Version  int64     `json:"version"`
	ID       string    `json:"id"` // random: tells a change of ours from another's
	At       time.Time `json:"at"` // UTC, whole milliseconds
	Actor    Actor     `json:"actor"`
	Action   string    `json:"action"`
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	Instance string    `json:"instance,omitempty"` // that took the request
	// Before and After are the resource as the admin API shows it; null
	// where there was or is none.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Actor is who made a change.
type Actor struct {
	ClientID string `json:"client_id"`
	Username string `json:"username,omitempty"` // empty for a client of its own account
	Address  string `json:"address,omitempty"`
}
