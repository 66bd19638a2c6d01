package clientcfg

import (
	"runtime"
	"sync"
)

// decodedTogether is how many records go from one goroutine to another at once, and queuedTogether how often that
// many may wait to be decoded: about a batch of a database, so that the next one is read meanwhile.
const (
	decodedTogether = 256
	queuedTogether  = 20
)

// DecodeAll calls each with every record that read adds, in any order, and returns the error of read.
// Decoding takes most of the time in which a server reads its clients, so all processors do it. read is
// called by this goroutine, each by one goroutine at a time; what is added must stay as it is.
func DecodeAll[V any](read func(add func(V)) error, decode func(V) Record, each func(Record)) (err error) {
	encoded := make(chan []V, queuedTogether)
	var workers sync.WaitGroup
	var applying sync.Mutex // while each is called
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var records []Record
			for some := range encoded {
				records = records[:0]
				for _, v := range some {
					records = append(records, decode(v))
				}
				applying.Lock()
				for i := range records {
					each(records[i])
				}
				applying.Unlock()
			}
		})
	}
	var some []V
	defer func() { // also if read panics, over a damaged file
		close(encoded)
		workers.Wait()
	}()
	err = read(func(v V) {
		if some = append(some, v); len(some) == decodedTogether {
			encoded <- some
			some = nil
		}
	})
	if len(some) > 0 {
		encoded <- some
	}
	return err
}
