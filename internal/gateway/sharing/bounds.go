package sharing

import (
	"sync"
	"time"
)

const (
	// maxReads bounds the concurrent reads.
	maxReads = 64
	// maxFruitless bounds the reads of one source per minute that find nothing.
	maxFruitless = 60
	// maxSources bounds the number of counted sources per minute. Further sources get no reads.
	maxSources = 10_000
	// failurePause is the pause before the next read after the store has failed.
	failurePause = time.Second
)

// ending is the result of a read.
type ending uint8

const (
	gone      ending = iota // the request was canceled
	found                   // the store had the token
	fruitless               // the store did not have the token
	failed
)

// bounds limits the reads of the store.
type bounds struct {
	mu       sync.Mutex
	underWay int
	paused   time.Time      // end of the pause after a failure of the store
	minute   time.Time      // start of the minute that asked counts
	asked    map[string]int // reads of this minute that found nothing, or are still running, by source
}

// begin counts a read. It reports false if there are too many. The caller calls end for every
// counted read.
func (b *bounds) begin(now time.Time, source string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if age := now.Sub(b.minute); b.asked == nil || age >= time.Minute || age < 0 {
		b.minute, b.asked = now, map[string]int{}
	}
	n, known := b.asked[source]
	if b.underWay >= maxReads || now.Before(b.paused) || n >= maxFruitless || !known && len(b.asked) >= maxSources {
		return false
	}
	b.underWay++
	b.asked[source] = n + 1
	return true
}

// end removes a read from the counts. A fruitless read stays in the count of its source.
func (b *bounds) end(now time.Time, source string, how ending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underWay--
	if how == failed {
		b.paused = now.Add(failurePause)
	}
	if how != found && how != failed {
		return
	}
	switch n := b.asked[source]; n {
	case 0: // it began in the previous minute
	case 1:
		delete(b.asked, source) // makes room for another source
	default:
		b.asked[source] = n - 1
	}
}
