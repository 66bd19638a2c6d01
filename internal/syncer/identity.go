package syncer

import (
	"slices"
	"sync"
	"time"
)

// A sequence is the process time in milliseconds, so that it is larger than those
// of processes before, with random bits below, so that two copies of one process
// do not issue the same.
const seqRandomBits = 20

// oldestSeq is less than every sequence, and larger than those of releases that
// used milliseconds alone.
const oldestSeq = 1 << 50

// seqTime is when a sequence was issued, in milliseconds since the epoch.
func seqTime(seq int64) int64 {
	if seq < oldestSeq {
		return seq
	}
	return seq >> seqRandomBits
}

// identity is under what name this process writes, and with which sequences.
type identity struct {
	mu       sync.Mutex
	names    []name // the last is used now
	seq      int64  // the highest that was issued
	random   func(bits int) int64
	nonces   []string // of the latest heartbeats, as many as are remembered
	unstored int      // heartbeats since the last that is known to be stored
}

// name is an ID and the sequence after which it was taken.
type name struct {
	id    string
	after int64
}

func newIdentity(random func(bits int) int64) *identity {
	return &identity{names: []name{{id: newID()}}, random: random}
}

func (n *identity) id() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names[len(n.names)-1].id
}

// nextSeq returns a sequence that is larger than all before.
func (n *identity) nextSeq(now time.Time) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq = max(n.seq+1, now.UnixMilli()<<seqRandomBits|n.random(seqRandomBits))
	return n.seq
}

// writer is the ID that a sequence was issued under; the current one for 0.
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

// own reports whether an ID is or was that of this process.
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

// renew takes another ID, unless old has been given up already. What is pending
// under the old one is resolved under it.
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

// maxNonces is how many heartbeats before those in doubt are remembered, since one
// may be stored later than those after it, and how many may be in doubt: with
// more of them a copy of this process is not recognised.
const maxNonces = 64

// nonce returns a random text for the next heartbeat.
func (n *identity) nonce() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	nonce := newID()
	n.nonces = append(n.nonces, nonce)
	n.nonces = slices.Delete(n.nonces, 0, max(len(n.nonces)-2*maxNonces, 0))
	n.unstored++
	return nonce
}

// stored notes that the latest heartbeat was stored, and reports whether the one
// it replaced was written by another process.
func (n *identity) stored(previous string) (foreign bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	foreign = previous != "" && n.unstored <= maxNonces && !slices.Contains(n.nonces, previous)
	n.unstored = 0
	return foreign
}
