package syncer

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"time"
)

// Roster keeps heartbeats in memory, for a store used by one process only. It has the methods of
// [Instances], and Reports. They take the time of the store's clock as now, and are safe for
// concurrent use. The zero value is empty.
type Roster struct {
	mu      sync.Mutex
	records map[string]Instance
}

// Beat stores a heartbeat. It returns the live instances and the nonce that it replaces.
func (r *Roster) Beat(now time.Time, self Instance, ttl time.Duration) (alive []Instance, previous string) {
	self.Beaten, self.Report = now, bytes.Clone(self.Report)
	r.mu.Lock()
	defer r.mu.Unlock()
	previous = r.records[self.ID].Nonce
	r.put(self)
	return r.alive(now, ttl, false), previous
}

// Put stores a record without changing Beaten.
func (r *Roster) Put(i Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(i)
}

func (r *Roster) put(i Instance) {
	if r.records == nil {
		r.records = map[string]Instance{}
	}
	r.records[i.ID] = i
}

// Alive returns the instances that have beaten within ttl of the newest heartbeat, without reports.
func (r *Roster) Alive(now time.Time, ttl time.Duration) []Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	var newest time.Time
	for _, i := range r.records {
		if i.Beaten.After(newest) && i.Beaten.Sub(now) < ttl {
			newest = i.Beaten
		}
	}
	return r.alive(newest, ttl, false)
}

// Leave removes a heartbeat.
func (r *Roster) Leave(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.records, id)
}

// Reports returns the instances that have beaten within ttl of now, with their reports.
func (r *Roster) Reports(now time.Time, ttl time.Duration) []Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive(now, ttl, true)
}

// alive returns the records of instances that have beaten within ttl of now, ordered by ID. It
// leaves out records that are ttl or more ahead: their clock was wrong.
func (r *Roster) alive(now time.Time, ttl time.Duration, reports bool) (list []Instance) {
	for _, id := range slices.Sorted(maps.Keys(r.records)) {
		i := r.records[id]
		if now.Sub(i.Beaten).Abs() >= ttl {
			continue
		}
		if i.Report = bytes.Clone(i.Report); !reports {
			i.Report = nil
		}
		list = append(list, i)
	}
	return list
}
