package overload

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// probe measures how long work waits for the processor: the time between writing a byte to a pipe
// and reading it. A goroutine that waits for a socket is served in the same order. The latencies
// from Go's scheduler do not include this wait, because they begin only when the scheduler has
// learned that there is data to read.
type probe struct {
	r, w  *os.File
	sent  atomic.Int64 // nanoseconds since began; 0: no byte is in transit
	wait  atomic.Int64 // wait of the last byte
	began time.Time    // origin of sent; before the first byte, so sent is never 0
	ended chan struct{}
}

func newProbe() (*probe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("overload: make a pipe: %w", err)
	}
	p := &probe{r: r, w: w, began: time.Now().Add(-1), ended: make(chan struct{})}
	go p.receive()
	return p, nil
}

// receive reads until the pipe is closed.
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

// measure returns the last measured wait, or the current one if it is longer, and sends the next
// byte. It returns an error if the pipe is closed.
func (p *probe) measure() (time.Duration, error) {
	now := int64(time.Since(p.began))
	if sent := p.sent.Load(); sent != 0 { // the byte is still waiting
		return time.Duration(max(now-sent, p.wait.Load())), nil
	}
	wait := p.wait.Load()
	p.sent.Store(now)
	if _, err := p.w.Write([]byte{1}); err != nil {
		return 0, fmt.Errorf("overload: write to a pipe: %w", err)
	}
	return time.Duration(wait), nil
}

func (p *probe) close() {
	_ = p.w.Close() // a pipe within this process loses nothing
	_ = p.r.Close()
	<-p.ended
}
