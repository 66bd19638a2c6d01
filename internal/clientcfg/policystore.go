package clientcfg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Errors that a [PolicyStore] returns, possibly wrapped.
var (
	// ErrPolicyConflict: there is another entry of that version, or none of the one before.
	ErrPolicyConflict = errors.New("clientcfg: the policies were changed meanwhile")
	// ErrPolicyGap: an entry is missing in the trail. It is an ErrUnreadable too.
	ErrPolicyGap = fmt.Errorf("%w: an entry is missing", ErrUnreadable)
	// ErrUnreadable: what is stored was not written by this release, or one that it knows.
	ErrUnreadable = errors.New("clientcfg: the stored policies cannot be read")
)

// PolicyStore keeps the trail of the changes of policies, which is what the policies follow from:
// entries whose versions count up from 1 without a gap, and that never change. Now and then it folds
// them into a state, so that a reader need not read all of them, and old ones can be removed.
// Implementations MUST be safe for concurrent use, MUST make an entry durable before they return nil,
// and MUST return the errors above (wrapped is fine) for the cases they name.
type PolicyStore interface {
	// PolicyVersion returns which entry is the newest, cheaply; zero if there never was one. It is that
	// of PolicyState at the same time, unless an entry cannot be read, or the newest is lost.
	PolicyVersion(ctx context.Context) (PolicyVersion, error)
	// PolicyState returns what all entries come to, as of one version: that of the newest, or, if Stopped
	// says so, of the one before the first that cannot be read. ErrUnreadable if the fold cannot be read.
	PolicyState(ctx context.Context) (PolicyState, error)
	// PolicyEntries returns entries from that version on, the oldest first: some of them if there are
	// many, at least one if there is any, and none twice. One that cannot be read has Version, Err, and
	// the ID that PolicyVersion has of it.
	PolicyEntries(ctx context.Context, from int64) ([]PolicyEntry, error)
	// AppendPolicyEntry stores an entry, which has a target at least. ErrPolicyConflict, and nothing is
	// stored, unless its Version is one more than that of the newest. If the reply of the database is
	// lost, the implementation finds out by entry.ID, which is unique, whether it was stored before it
	// returns.
	AppendPolicyEntry(ctx context.Context, entry PolicyEntry) error
}

// PolicyVersion is an entry of the trail: the one up to which policies are. Two that are equal are the
// same entry also if the trail was replaced by another, from a backup, unless the ID of both is empty.
type PolicyVersion struct {
	Number int64  // 0: there never was an entry
	ID     string // of the entry; empty if it was swept
}

// ErrNoWatch is returned by a [PolicyWatcher] that cannot watch.
var ErrNoWatch = errors.New("clientcfg: this store does not report changes")

// PolicyWatcher is a [PolicyStore] that may be able to report changes, so that they need
// not wait for the next refresh.
type PolicyWatcher interface {
	// WatchPolicies calls changed after changes, until ctx ends. It may
	// call too often, or miss changes, which polling finds. ErrNoWatch, at once, if the
	// store cannot do it; any other error means that the watch broke off.
	WatchPolicies(ctx context.Context, changed func()) error
}

// AuditLog reads the audit trail. An entry cannot be changed.
type AuditLog interface {
	// Audit returns the entries that match, the newest first. One that cannot be read has Version, Err, and
	// what else is known of it, without values; it may be missing from those of a target.
	Audit(ctx context.Context, q AuditQuery) ([]AuditEntry, error)
	// SweepAudit removes entries from before that time, and returns how many. What they changed stays,
	// and so does their number: it never removes one that is not folded. It stops at the first that is
	// young enough. One whose time cannot be read, or is after now, says nothing about its age: it is as
	// old as the next.
	SweepAudit(ctx context.Context, before, now time.Time) (int, error)
}

// AuditQuery chooses entries. Zero fields choose all.
type AuditQuery struct {
	Target string // exactly, such as policies/shop: one of those of the entry
	Before int64  // only entries of lower versions
	Limit  int    // at most so many; 0 for no bound
}

// AuditEntry is one change: who changed what. Its Version is that of the policies after
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
	// Until is when the change ends by itself; zero: it lasts.
	Until time.Time `json:"until,omitzero"`
	// Before and After are the resource as in the admin API; null if there was or is none.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// More are the other resources that the same change concerned, in the same form.
	More []Change `json:"more,omitempty"`
	// Err is why a stored entry cannot be read, an ErrUnreadable; nil if it can.
	Err error `json:"-"`
}

// Targets are the resources that the entry shows as changed.
func (e *AuditEntry) Targets() []string {
	all := []string{e.Target}
	for i := range e.More {
		all = append(all, e.More[i].Target)
	}
	return all
}

// Actor is who made a change.
type Actor struct {
	ClientID string `json:"client_id"`
	Username string `json:"username,omitempty"` // empty if the client acted for itself
	Address  string `json:"address,omitempty"`
	// Store is who opened the store and changed it directly, as user@host by the word of that machine;
	// then there is no client. In events only.
	Store string `json:"store,omitempty"`
}
