package clientcfg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"oauth-server/internal/store"
)

// Event is an entry of the audit trail: a change of policies, a client, a user or their sign-ins,
// or a backup or restore of the store. It takes effect together with the change. If the change
// cannot be written in the same operation, the event is stored first. The zero Event is for
// programs that set up their own store. The audit trail does not show it.
type Event struct {
	Number   int64     `json:"-"` // of the trail entry
	ID       string    `json:"-"` // identifies the trail entry
	At       time.Time `json:"-"` // UTC, whole milliseconds
	Actor    Actor     `json:"actor"`
	Action   string    `json:"action"`
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	Instance string    `json:"instance,omitempty"` // that served the request
	// Until is when a temporary change ends. Zero means permanent.
	Until time.Time `json:"until,omitzero"`
	// Before and After are the changed resource as in the admin API, without secrets. Null means
	// that it did not or does not exist.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// More are the other resources that the same change affected, in the same form.
	More []Change `json:"more,omitempty"`
	// Changes are all changes that the event makes to policies.
	Changes []Change `json:"changes,omitempty"`
	// Unknown is set if a change failed and may or may not have been made. Such an event follows
	// the event of the change.
	Unknown bool `json:"unknown,omitempty"`
	// Err is why a stored event cannot be read. It wraps ErrUnreadable. Nil means readable.
	Err error `json:"-"`
}

// Actor identifies the author of a change.
type Actor struct {
	ClientID string `json:"client_id"`
	Username string `json:"username,omitempty"` // empty if the client acted for itself
	Address  string `json:"address,omitempty"`
	// user@host, as reported by that machine, if the store was opened directly or by its key; then
	// there is no client
	Store string `json:"store,omitempty"`
}

// ClientTarget returns the event target for a client.
func ClientTarget(id string) string { return "clients/" + id }

// UserTarget returns the event target for a user.
func UserTarget(name string) string { return "users/" + name }

// BanTarget returns the event target for the ban of a client, or of one of its users.
func BanTarget(clientID, username string) string {
	if username == "" {
		return "bans/" + clientID
	}
	return "bans/" + clientID + " " + username
}

// StoreTarget is the event target for the whole store, for backups and restores.
const StoreTarget = "store"

// BackupAction is the action of an event for a backup of the store.
const BackupAction = "backup"

// entry returns the trail entry for the event.
func (e *Event) entry() (store.Entry, error) {
	if e.Action == "" && len(e.Changes) == 0 {
		return store.Entry{At: time.Now(), Value: []byte("{}")}, nil
	}
	value, err := encodeJSON(e)
	if err != nil {
		return store.Entry{}, fmt.Errorf("clientcfg: encode event: %w", err)
	}
	return store.Entry{At: e.At, Value: value}, nil
}

// readEvent is the inverse of entry. For an unreadable entry it returns the readable fields,
// without values.
func readEvent(entry *store.Entry) (e Event) {
	err := entry.Err
	if err == nil {
		err = decodeStrictly(entry.Value, &e)
	}
	if err != nil {
		_ = json.Unmarshal(entry.Value, &e) // as far as it can be read
		e.Before, e.After, e.More, e.Changes = nil, nil, nil, nil
		e.Err = fmt.Errorf("%w: entry %d: %w", ErrUnreadable, entry.Number, err)
	}
	e.Number, e.ID, e.At = entry.Number, fmt.Sprintf("%016x", uint64(entry.Nonce)), entry.At.UTC() //nolint:gosec // a random number
	return e
}

// concerns reports whether the event changes the target.
func (e *Event) concerns(target string) bool {
	return e.Target == target || slices.ContainsFunc(e.More, func(c Change) bool { return c.Target == target })
}

func (q *EventQuery) matches(e *Event) bool {
	known := e.Action != "" && (!q.Limits || len(e.Changes) > 0)
	return (q.Target == "" || e.concerns(q.Target)) && (known || e.Err != nil)
}

// EventLog stores events. [AuditTrail] implements it.
type EventLog interface {
	// AddEvent stores an event.
	AddEvent(ctx context.Context, e Event) error
	// Events returns the matching events, newest first. A query for a target may miss unreadable
	// events.
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	// SweepEvents removes events older than before, except the newest.
	SweepEvents(ctx context.Context, before, now time.Time) error
}

// EventQuery selects events. Zero fields select all.
type EventQuery struct {
	Target string // exact target, such as policies/shop
	Before int64  // only events with lower numbers
	Since  int64  // only events with this or a greater number
	Limits bool   // only changes of limits, and unreadable events
	Limit  int    // maximum number of events; 0 for no limit
}

// AuditTrail is the audit trail. It implements [EventLog], and is safe for concurrent use.
type AuditTrail struct{ follower *store.Follower }

// NewAuditTrail returns the trail followed by f.
func NewAuditTrail(f *store.Follower) *AuditTrail { return &AuditTrail{f} }

// AddEvent implements [EventLog].
func (t *AuditTrail) AddEvent(ctx context.Context, e Event) error {
	return AppendEvent(ctx, t.follower, func() (Event, []store.Write, error) { return e, nil, nil })
}

// AppendEvent appends an event together with the writes of its change. prepare is called again if
// another writer was faster. It MUST NOT use the follower.
func AppendEvent(ctx context.Context, f *store.Follower, prepare func() (Event, []store.Write, error)) error {
	_, err := f.Append(ctx, func(int64) (entry store.Entry, writes []store.Write, err error) {
		e, writes, err := prepare()
		if err == nil {
			entry, err = e.entry()
		}
		return entry, writes, err
	})
	return err
}

// rewrittenAtOnce is how many records RewriteAll changes in one entry.
const rewrittenAtOnce = 1000

// RewriteAll applies edit to all values of a table, for a restored backup. Unreadable records stay
// as they are. The audit trail does not show it.
func RewriteAll[T any](ctx context.Context, f *store.Follower, c *store.Collection[T], edit func(v *T)) error {
	var writes []store.Write
	err := c.List(ctx, store.Query{}, func(v T, _ store.Seen) error {
		edit(&v)
		w, err := c.Write(&v)
		writes = append(writes, w)
		return err
	})
	for some := range slices.Chunk(writes, rewrittenAtOnce) {
		if err == nil {
			err = AppendEvent(ctx, f, func() (Event, []store.Write, error) { return Event{}, some, nil })
		}
	}
	return err
}

// errEnough stops reading the trail.
var errEnough = errors.New("no more needed")

// history calls each with the store's trail entries.
func (t *AuditTrail) history(ctx context.Context, before int64, each func(*store.Entry) error) error {
	err := t.follower.Backend().History(ctx, before, func(e store.Entry) error { return each(&e) })
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("clientcfg: read the audit trail: %w", err)
	}
	return nil
}

// Events implements [EventLog].
func (t *AuditTrail) Events(ctx context.Context, q EventQuery) (list []Event, err error) {
	err = t.history(ctx, q.Before, func(entry *store.Entry) error {
		if entry.Number < q.Since {
			return errEnough
		}
		if e := readEvent(entry); q.matches(&e) {
			list = append(list, e)
		}
		if q.Limit > 0 && len(list) == q.Limit {
			return errEnough
		}
		return nil
	})
	return list, err
}

// SweepEvents implements [EventLog]. It never removes an entry by its own time alone, because the
// writer's clock may have been wrong: all entries before it must be old too. It ignores the time of
// an unreadable entry, and times later than now.
func (t *AuditTrail) SweepEvents(ctx context.Context, before, now time.Time) error {
	// The search reads only a few of the entries that stay.
	var failed error
	newest, err := t.newestOf(ctx, 0, now)
	if err != nil {
		return err
	}
	old := int64(sort.Search(int(newest.Number), func(n int) bool {
		e, err := t.newestOf(ctx, int64(n)+2, now)
		failed = errors.Join(failed, err)
		return !e.At.Before(before)
	}))
	if failed != nil {
		return failed
	}
	err = t.history(ctx, old+1, func(e *store.Entry) error {
		if e.Err == nil && !e.At.Before(before) && !e.At.After(now) {
			old = e.Number - 1
		}
		return nil
	})
	if err != nil || old < 1 {
		return err
	}
	return t.follower.Backend().Trim(ctx, old)
}

// newestOf returns the newest entry before a number with a known time, or the zero entry.
func (t *AuditTrail) newestOf(ctx context.Context, before int64, now time.Time) (newest store.Entry, err error) {
	err = t.history(ctx, before, func(e *store.Entry) error {
		if e.Err != nil || e.At.After(now) {
			return nil //nolint:nilerr // the next one is looked at
		}
		newest = *e
		return errEnough
	})
	return newest, err
}
