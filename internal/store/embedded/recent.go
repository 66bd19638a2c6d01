package embedded

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// recent is what the journals hold, by place: the newest value, nil for one
// that was removed. Values are never changed. Only the writer changes recent,
// so it may read it without the lock.
type recent struct {
	mu     sync.RWMutex
	latest map[place][]byte // of the journal that is written to
	active int              // its index in journals
	full   map[place][]byte // of the one that is being folded; nil if there is none
	order  []place          // of full, as they are folded
	folded int              // how many of them are
	foldAt int
}

func (r *recent) get(p place) (value []byte, known bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if value, known = r.latest[p]; !known {
		value, known = r.full[p]
	}
	return value, known
}

// committed takes over what a transaction has made durable.
func (r *recent) committed(w *writeTx) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.latest, w.staged)
	r.folded += w.folded
	if r.folded == len(r.order) {
		r.full, r.order, r.folded = nil, nil, 0
	}
	if r.full == nil && len(r.latest) >= r.foldAt {
		r.turnOver()
	}
}

// turnOver lets the other journal take over.
func (r *recent) turnOver() {
	r.full, r.latest = r.latest, make(map[place][]byte, len(r.latest))
	r.order = slices.SortedFunc(maps.Keys(r.full), place.compare)
	r.active = 1 - r.active
}

// load reads the journals of a file that is being opened.
func (r *recent) load(tx *bolt.Tx) (err error) {
	a, b := firstKey(tx, journals[0]), firstKey(tx, journals[1])
	if a == nil || b != nil && bytes.Compare(a, b) < 0 {
		r.active = 1
	}
	if r.latest, err = readJournal(tx, journals[r.active]); err != nil {
		return err
	}
	if a == nil || b == nil {
		return nil
	}
	r.full, err = readJournal(tx, journals[1-r.active])
	r.order = slices.SortedFunc(maps.Keys(r.full), place.compare)
	return err
}

func readJournal(tx *bolt.Tx, name []byte) (map[place][]byte, error) {
	values := map[place][]byte{}
	return values, tx.Bucket(name).ForEach(func(_, entry []byte) error {
		p, value, err := parseEntry(entry)
		values[p] = bytes.Clone(value)
		return err
	})
}

// due returns up to n places whose newest value, in a journal, expired before
// now. Those that are in the full journal only count if no newer value hides them.
func (r *recent) due(now time.Time, n int) (places []place) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for p, value := range r.latest {
		if len(places) < n && value != nil && expiryOf(value).Before(now) {
			places = append(places, p)
		}
	}
	for p, value := range r.full {
		if _, hidden := r.latest[p]; !hidden && len(places) < n && value != nil && expiryOf(value).Before(now) {
			places = append(places, p)
		}
	}
	return places
}
