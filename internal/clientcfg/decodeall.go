package clientcfg

import (
	"runtime"
	"sync"
)

// decodedTogether is how many records go from one goroutine to another at once.
const decodedTogether = 256

// DecodeAll calls each with every record that read adds, in any order, and returns the error of read.
// Decoding takes most of the time in which a server reads its clients, so all processors do it. read
// and each are called by this goroutine or one other; what is added must stay as it is.
func DecodeAll[V any](read func(add func(V)) error, decode func(V) Record, each func(Record)) (err error) {
	encoded, decoded := make(chan []V, runtime.GOMAXPROCS(0)), make(chan []Record, runtime.GOMAXPROCS(0))
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for some := range encoded {
				records := make([]Record, len(some))
				for i, v := range some {
					records[i] = decode(v)
				}
				decoded <- records
			}
		})
	}
	var applying sync.WaitGroup
	applying.Go(func() {
		for records := range decoded {
			for i := range records {
				each(records[i])
			}
		}
	})
	var some []V
	defer func() { // also if read panics, over a damaged file
		close(encoded)
		workers.Wait()
		close(decoded)
		applying.Wait()
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
