package syncer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/store"
)

// InstancesTable has the heartbeats of instances by ID, ReportsTable the reports that came with
// them. They are separate because every instance reads all heartbeats every few seconds.
var (
	InstancesTable = store.Table{Name: "instances", Volatile: true}
	ReportsTable   = store.Table{Name: "reports", Volatile: true}
)

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
	return &Heartbeats{beats: store.Collection[Instance]{Backend: b, Table: InstancesTable, Encode: encodeBeat, Decode: decodeBeat}}
}

// beat is the value of a heartbeat.
type beat struct {
	Time  time.Time `json:"time"`
	Nonce string    `json:"nonce"`
}

func encodeBeat(i *Instance) (store.Record, error) {
	value, err := json.Marshal(beat{i.Time.UTC(), i.Nonce})
	return store.Record{Key: i.ID, Value: value, Expires: i.Time.Add(keptBeats)}, err
}

func decodeBeat(r *store.Record) (Instance, error) {
	var v beat
	err := store.Unmarshal(r, &v)
	return Instance{ID: r.Key, Beaten: r.Changed, Time: v.Time, Nonce: v.Nonce}, err
}

// Beat implements [Instances].
func (h *Heartbeats) Beat(ctx context.Context, self Instance, ttl time.Duration) (alive []Instance, previous string, err error) {
	if previous, err = h.put(ctx, &self); err != nil {
		return nil, "", err
	}
	if len(self.Report) > 0 {
		report := store.Record{Key: self.ID, Value: self.Report, Version: max(self.Time.UnixMilli(), 1), Expires: self.Time.Add(keptBeats)}
		if err = h.beats.Backend.PutAll(ctx, ReportsTable, []store.Record{report}); err != nil {
			return nil, "", err
		}
	}
	all, err := h.list(ctx)
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
func (h *Heartbeats) list(ctx context.Context) (all []Instance, err error) {
	err = h.beats.List(ctx, store.Query{}, func(i Instance, _ store.Seen) error {
		all = append(all, i)
		return nil
	})
	return all, err
}

// LastLiving returns the instances that were alive at the newest heartbeat, except for heartbeats
// that are ttl or more ahead of now.
func LastLiving(all []Instance, now time.Time, ttl time.Duration) []Instance {
	var newest time.Time
	for _, i := range all {
		if i.Beaten.After(newest) && i.Beaten.Sub(now) < ttl {
			newest = i.Beaten
		}
	}
	return Living(all, newest, ttl)
}

// Alive implements [Instances].
func (h *Heartbeats) Alive(ctx context.Context, ttl time.Duration) ([]Instance, error) {
	now, all, err := h.now(ctx)
	return LastLiving(all, now, ttl), err
}

// now reads the time of the store and all heartbeats.
func (h *Heartbeats) now(ctx context.Context) (now time.Time, all []Instance, err error) {
	if now, err = h.beats.Backend.Now(ctx); err == nil {
		all, err = h.list(ctx)
	}
	return now, all, err
}

// Leave implements [Instances].
func (h *Heartbeats) Leave(ctx context.Context, id string) error {
	return errors.Join(h.beats.Backend.Delete(ctx, InstancesTable, nil, id), h.beats.Backend.Delete(ctx, ReportsTable, nil, id))
}

// Reports returns the instances that have beaten within ttl, by the clock of the store, with their reports,
// ordered by ID.
func (h *Heartbeats) Reports(ctx context.Context, ttl time.Duration) ([]Instance, error) {
	now, all, err := h.now(ctx)
	if err != nil {
		return nil, err
	}
	list := Living(all, now, ttl)
	keys, places := make([]string, len(list)), make(map[string]int, len(list))
	for i := range list {
		keys[i], places[list[i].ID] = list[i].ID, i
	}
	err = h.beats.Backend.Get(ctx, ReportsTable, func(r store.Record) error {
		if r.Err == nil {
			list[places[r.Key]].Report = bytes.Clone(r.Value)
		}
		return nil
	}, keys...)
	return list, err
}
