package sharing

import (
	"sync"
	"time"
)

const (
	// maxReads is how many reads may be under way.
	maxReads = 64
	// maxFruitless is how many reads of one source may find nothing in a minute.
	maxFruitless = 60
	// maxSources is of how many sources that is counted in a minute; further ones do not ask.
	maxSources = 10_000
	// failurePause is how long the store is not asked after it has failed.
	failurePause = time.Second
)

// ending is how a read ends.
type ending uint8

const (
	gone      ending = iota // with the request
	found                   // the store had the token
	fruitless               // it did not
	failed
)

// bounds limits what is asked of the store.
type bounds struct {
	mu       sync.Mutex
	underWay int
	paused   time.Time      // until then, because the store has failed
	minute   time.Time      // when asked was cleared
	asked    map[string]int // reads of this minute that found nothing, or may yet, by source
}

// begin counts a read, and reports false if there are too many. Every read that is counted needs an end.
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

// end takes back the count of a read, unless that was fruitless.
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
	case 0: // what began in the minute before is not in it
	case 1:
		delete(b.asked, source) // which gives its place to another source
	default:
		b.asked[source] = n - 1
	}
}
