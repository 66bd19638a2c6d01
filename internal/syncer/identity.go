package syncer

import (
	"slices"
	"sync"
	"time"
)

// seqRandomBits is the number of random low bits of a sequence. They keep two copies of one process
// from issuing the same sequence. The bits above them are process time in milliseconds, so a
// sequence is larger than the sequences of earlier processes.
const seqRandomBits = 20

// seqTime returns when a sequence was issued, in milliseconds since the epoch.
func seqTime(seq int64) int64 { return seq >> seqRandomBits }

// identity holds the ID that this process writes and beats under, and its sequences.
type identity struct {
	mu       sync.Mutex
	names    []name   // the last is used now
	seq      int64    // the highest that was issued
	nonces   []string // of the latest heartbeats; see maxNonces
	unstored int      // heartbeats since the last that is known to be stored
}

// name is an ID and the sequence after which it was taken.
type name struct {
	id    string
	after int64
}

func newIdentity() *identity { return &identity{names: []name{{id: newID()}}} }

// id returns the ID that is used now.
func (n *identity) id() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names[len(n.names)-1].id
}

// nextSeq returns a sequence for now that is larger than all before.
func (n *identity) nextSeq(now time.Time) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq = max(n.seq+1, now.UnixMilli()<<seqRandomBits|randomBits(seqRandomBits))
	return n.seq
}

// writer returns the ID that a sequence was issued under. For 0 it returns the present ID.
func (n *identity) writer(seq int64) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := len(n.names) - 1; i > 0; i-- {
		if seq == 0 || seq > n.names[i].after {
			return n.names[i].id
		}
	}
	return n.names[0].id
}

// own reports whether an ID is or was one of this process.
func (n *identity) own(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, mine := range n.names {
		if mine.id == id {
			return true
		}
	}
	return false
}

// replace takes a new ID if old is the present one, and returns the present ID and whether it is
// new. Writes that are pending under the old ID keep it.
func (n *identity) replace(old string) (id string, renewed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if current := n.names[len(n.names)-1].id; current != old {
		return current, false
	}
	n.names = append(n.names, name{id: newID(), after: n.seq})
	n.nonces, n.unstored = nil, 0
	return n.names[len(n.names)-1].id, true
}

// maxNonces is how many nonces are remembered, beginning before the unstored heartbeats. A
// heartbeat may be stored later than the ones after it. maxNonces also bounds the unstored
// heartbeats: with more, a copy of this process is not recognised.
const maxNonces = 64

// nonce returns a new nonce for the next heartbeat.
func (n *identity) nonce() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	nonce := newID()
	n.nonces = append(n.nonces, nonce)
	n.nonces = slices.Delete(n.nonces, 0, max(len(n.nonces)-2*maxNonces, 0))
	n.unstored++
	return nonce
}

// stored records that the latest heartbeat was stored. It reports whether the heartbeat that it
// replaced, with the nonce previous, came from another process.
func (n *identity) stored(previous string) (foreign bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	foreign = previous != "" && n.unstored <= maxNonces && !slices.Contains(n.nonces, previous)
	n.unstored = 0
	return foreign
}
