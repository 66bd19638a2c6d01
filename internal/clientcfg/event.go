package clientcfg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Event is a change of a client, of a user or of what they are signed in with, or a backup or restoration
// of the store: what the audit trail shows beside the changes of policies. It changes no policy and has no version. It is stored, open,
// before the change is made, and closed afterwards, so that no change is without one.
type Event struct {
	ID       string    `json:"id"` // unique; of one time the greater is the later
	At       time.Time `json:"at"` // UTC, whole milliseconds
	Actor    Actor     `json:"actor"`
	Action   string    `json:"action"`
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	Instance string    `json:"instance,omitempty"` // that served the request
	// Before and After are what is changed, as in the admin API, without anything secret; null if there
	// was or is nothing.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// Open is set while the change is under way. It stays if the process ended meanwhile, or the store
	// did not answer: then it is not known whether the change was made.
	Open bool `json:"open,omitempty"`
	// Err is why a stored event cannot be read, an ErrUnreadableEvent; nil if it can.
	Err error `json:"-"`
}

// ErrUnreadableEvent is why a stored event is not shown whole: it was edited by hand, or a newer release
// wrote it.
var ErrUnreadableEvent = errors.New("clientcfg: the stored event cannot be read")

// ClientTarget is a client as a target of events.
func ClientTarget(id string) string { return "clients/" + id }

// UserTarget is a user as a target of events.
func UserTarget(name string) string { return "users/" + name }

// BanTarget is the ban of a client, or of one of its users, as a target of events.
func BanTarget(clientID, username string) string {
	if username == "" {
		return "bans/" + clientID
	}
	return "bans/" + clientID + " " + username
}

// StoreTarget is the store as a whole as a target of events: that it was backed up, or restored.
const StoreTarget = "store"

// BackupAction is the action of an event that the store was backed up.
const BackupAction = "backup"

// Key orders events by time, as texts are ordered.
func (e *Event) Key() string { return EventsBefore(e.At) + "-" + e.ID }

// EventsBefore is a key above those of all events before a time, and below those from then on.
func EventsBefore(at time.Time) string { return fmt.Sprintf("%014d", max(0, at.UnixMilli())) }

// ReadEvent returns a stored event. Of one that cannot be read there are the time and the ID, as the key
// has them, Err, and what else is known of it, without values; false: it is not the key of an event.
func ReadEvent(key string, stored []byte) (e Event, ok bool) {
	at, id, parts := strings.Cut(key, "-")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !parts || err != nil || EventsBefore(time.UnixMilli(ms)) != at {
		return Event{}, false
	}
	err = json.Unmarshal(stored, &e)
	if err == nil && e.Key() != key {
		err = fmt.Errorf("it is of another key, %s", e.Key())
	}
	if err != nil {
		e.ID, e.At, e.Before, e.After = id, time.UnixMilli(ms).UTC(), nil, nil
		e.Err = fmt.Errorf("%w: %w", ErrUnreadableEvent, err)
	}
	return e, true
}

// EventLog keeps the events. Implementations MUST be safe for concurrent use, and MUST make what they
// do durable before they return nil.
type EventLog interface {
	// AddEvent stores an event under its key.
	AddEvent(ctx context.Context, e Event) error
	// EndEvent closes the event of that key if its change was made, and removes it if it was not. One
	// that is not there is no error.
	EndEvent(ctx context.Context, key string, made bool) error
	// Events returns the events that match, the newest first. One that cannot be read is as [ReadEvent]
	// returns it; it may be missing from those of a target.
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	// SweepEvents removes events from before that time, and returns how many.
	SweepEvents(ctx context.Context, before time.Time) (int, error)
}

// EventQuery chooses events. Zero fields choose all.
type EventQuery struct {
	Target string // exactly
	Before string // only those of lower keys
	Limit  int    // at most so many; 0 for no bound
}
