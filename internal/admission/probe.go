package admission

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// probe measures how long work waits for the processor: the time from a byte that is written to a pipe until it is
// read. A goroutine that waits for a socket is served in the same order. The latencies that Go's scheduler reports do
// not show this wait, since they begin when the scheduler has learned that there is something to read.
type probe struct {
	r, w  *os.File
	sent  atomic.Int64 // nanoseconds since began; 0: nothing is under way
	wait  atomic.Int64 // of the last byte
	began time.Time    // what sent counts from: before the first byte, whose sent is not 0 so
	ended chan struct{}
}

func newProbe() (*probe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("admission: make a pipe: %w", err)
	}
	p := &probe{r: r, w: w, began: time.Now().Add(-1), ended: make(chan struct{})}
	go p.receive()
	return p, nil
}

// receive ends when the pipe is closed.
func (p *probe) receive() {
	defer close(p.ended)
	for b := make([]byte, 1); ; {
		if _, err := p.r.Read(b); err != nil {
			return
		}
		p.wait.Store(int64(time.Since(p.began)) - p.sent.Load())
		p.sent.Store(0)
	}
}

// measure returns the wait that was measured last, or is being measured, and sends the next byte. The error
// says that the pipe is closed.
func (p *probe) measure() (time.Duration, error) {
	now := int64(time.Since(p.began))
	if sent := p.sent.Load(); sent != 0 { // it waits still
		return time.Duration(max(now-sent, p.wait.Load())), nil
	}
	wait := p.wait.Load()
	p.sent.Store(now)
	if _, err := p.w.Write([]byte{1}); err != nil {
		return 0, fmt.Errorf("admission: write to a pipe: %w", err)
	}
	return time.Duration(wait), nil
}

func (p *probe) close() {
	_ = p.w.Close() // of a pipe of this process: nothing is lost
	_ = p.r.Close()
	<-p.ended
}
