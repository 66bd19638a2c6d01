package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/store"
)

// instancesTable has the heartbeats of instances by ID, with their reports.
var instancesTable = store.Table{Name: "instances"}

// withoutReports selects all heartbeats. Every instance reads them every few seconds, so their
// reports, which are long, may be left out.
var withoutReports = store.Query{Omit: "report"}

// keptBeats is how long the heartbeat of a process that died is kept.
const keptBeats = time.Hour

// Heartbeats keeps the heartbeats of instances in tables. It implements [Instances].
type Heartbeats struct {
	beats store.Collection[Instance]

	mu    sync.Mutex
	nonce string     // of the heartbeat stored here
	seen  store.Seen // state of its record
}

// NewHeartbeats returns the heartbeats of a store.
func NewHeartbeats(b store.Backend) *Heartbeats {
	return &Heartbeats{beats: store.Collection[Instance]{Backend: b, Table: instancesTable, Encode: encodeBeat, Decode: decodeBeat}}
}

// beat is the value of a heartbeat.
type beat struct {
	Time   time.Time       `json:"time"`
	Nonce  string          `json:"nonce"`
	Report json.RawMessage `json:"report,omitempty"`
}

func encodeBeat(i *Instance) (store.Record, error) {
	value, err := json.Marshal(beat{i.Time.UTC(), i.Nonce, i.Report})
	return store.Record{Key: i.ID, Value: value, Expires: i.Time.Add(keptBeats)}, err
}

func decodeBeat(r *store.Record) (Instance, error) {
	var v beat
	err := store.Unmarshal(r, &v)
	return Instance{ID: r.Key, Beaten: r.Changed, Time: v.Time, Nonce: v.Nonce, Report: v.Report}, err
}

// Beat implements [Instances].
func (h *Heartbeats) Beat(ctx context.Context, self Instance, ttl time.Duration) (alive []Instance, previous string, err error) {
	if previous, err = h.put(ctx, &self); err != nil {
		return nil, "", err
	}
	all, err := h.list(ctx, withoutReports)
	if err != nil {
		return nil, "", err
	}
	own := slices.IndexFunc(all, func(i Instance) bool { return i.ID == self.ID })
	if own < 0 {
		return nil, "", fmt.Errorf("heartbeat of %s was stored but not found", self.ID)
	}
	return Living(all, all[own].Beaten, ttl), previous, nil
}

// Living returns the instances that have beaten within ttl of now. It leaves out instances that are
// ttl or more ahead: their clock was wrong.
func Living(all []Instance, now time.Time, ttl time.Duration) []Instance {
	return slices.DeleteFunc(all, func(i Instance) bool { return now.Sub(i.Beaten).Abs() >= ttl })
}

// put stores a heartbeat and returns the nonce of the heartbeat that it replaces. It remembers this
// nonce from its last call. If that was for another ID, or another process stored a heartbeat with
// the same ID, the state conflicts.
func (h *Heartbeats) put(ctx context.Context, self *Instance) (previous string, err error) {
	h.mu.Lock()
	previous, seen := h.nonce, h.seen
	h.mu.Unlock()
	for {
		stored, err := h.beats.Put(ctx, self, seen)
		if err == nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.nonce, h.seen = self.Nonce, stored
			return previous, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return "", err
		}
		var before Instance
		if before, seen, err = h.beats.Get(ctx, self.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
		previous = before.Nonce
	}
}

// list reads all heartbeats, ordered by ID, and leaves out unreadable ones.
func (h *Heartbeats) list(ctx context.Context, q store.Query) (all []Instance, err error) {
	err = h.beats.List(ctx, q, func(i Instance, _ store.Seen) error {
		if q.Omit != "" { // a file returns it anyway
			i.Report = nil
		}
		all = append(all, i)
		return nil
	})
	return all, err
}

// Leave implements [Instances].
func (h *Heartbeats) Leave(ctx context.Context, id string) error {
	return h.beats.Backend.Delete(ctx, instancesTable, nil, id)
}

// Reports returns the instances that have beaten within ttl, by the clock of the store, with their reports,
// ordered by ID.
func (h *Heartbeats) Reports(ctx context.Context, ttl time.Duration) ([]Instance, error) {
	now, err := h.beats.Backend.Now(ctx)
	if err != nil {
		return nil, err
	}
	all, err := h.list(ctx, store.Query{})
	return Living(all, now, ttl), err
}
