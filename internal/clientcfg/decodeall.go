package clientcfg

import (
	"runtime"
	"sync"

	"oauth-server/internal/store"
)

// decodedTogether is how many records go from one goroutine to another at once, and queuedTogether how often that
// many may wait to be decoded: about a batch of a database, so that the next one is read meanwhile.
const (
	decodedTogether = 256
	queuedTogether  = 20
)

// decodeAll calls each with every client that read adds, in any order, and returns the error of read.
// Decoding takes most of the time in which a server reads its clients, so all processors do it. read is
// called by this goroutine, each by one goroutine at a time; what is added must stay as it is.
func decodeAll(read func(add func(store.Record)) error, each func(Record)) (err error) {
	encoded := make(chan []store.Record, queuedTogether)
	var workers sync.WaitGroup
	var applying sync.Mutex // while each is called
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var records []Record
			for some := range encoded {
				records = records[:0]
				for i := range some {
					records = append(records, readClient(&some[i]))
				}
				applying.Lock()
				for i := range records {
					each(records[i])
				}
				applying.Unlock()
			}
		})
	}
	var some []store.Record
	defer func() { // also if read panics, over a damaged file
		close(encoded)
		workers.Wait()
	}()
	err = read(func(r store.Record) {
		if some = append(some, r); len(some) == decodedTogether {
			encoded <- some
			some = nil
		}
	})
	if len(some) > 0 {
		encoded <- some
	}
	return err
}

// readClient returns the client of a record, or why it cannot be read.
func readClient(r *store.Record) Record {
	c, err := decodeClient(r)
	return Record{ID: r.Key, Client: c, Err: err}
}
