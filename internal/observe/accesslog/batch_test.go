package accesslog_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/accesslog"
)

// output is a writer that counts its writes, and can fail or block.
type output struct {
	check.Buffer

	entered, block chan struct{} // the first write closes entered and waits for block; nil: it does not

	mu     sync.Mutex
	writes int
	room   int // bytes until it fails; -1: it does not
}

var errFull = errors.New("no space left")

func newOutput() *output { return &output{room: -1} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writes++; o.writes == 1 && o.block != nil {
		close(o.entered)
		<-o.block
	}
	if o.room < 0 || len(p) <= o.room {
		o.room = max(o.room-len(p), -1)
		return o.Buffer.Write(p)
	}
	n, _ := o.Buffer.Write(p[:o.room])
	o.room = 0
	return n, errFull
}

// setRoom sets after how many bytes writes fail.
func (o *output) setRoom(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room = n
}

func (o *output) numWrites() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes
}

// plainText writes lines without their time.
func plainText(b *accesslog.Batch) *slog.Logger {
	return slog.New(b.Handler(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
}

// numbered returns the lines first to last of a log.
func numbered(first, last int) string {
	var all strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprintf(&all, "level=INFO msg=x n=%d\n", i)
	}
	return all.String()
}

// A line is written at once after a pause, and with others up to 5 ms after the last write.
func TestBatchTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		log := plainText(accesslog.NewBatch(out))
		expect := func(when string, lines, writes int) {
			t.Helper()
			synctest.Wait()
			check.Equal(t, "log "+when, out.String(), numbered(1, lines))
			check.Equal(t, "writes "+when, out.numWrites(), writes)
		}
		log.Info("x", slog.Int("n", 1))
		expect("of the first line", 1, 1)
		time.Sleep(3 * time.Millisecond) //nolint:forbidigo // simulated
		log.Info("x", slog.Int("n", 2))
		log.Info("x", slog.Int("n", 3))
		expect("3 ms later", 1, 1)
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // simulated
		expect("5 ms later", 3, 2)
		log.Info("x", slog.Int("n", 4))
		time.Sleep(4 * time.Millisecond) //nolint:forbidigo // simulated
		expect("after the next line", 3, 2)
		time.Sleep(time.Millisecond) //nolint:forbidigo // simulated
		expect("in its time", 4, 3)
		time.Sleep(time.Hour) //nolint:forbidigo // simulated
		log.Info("x", slog.Int("n", 5))
		expect("after an hour", 5, 4)
	})
}

// A batch is at most 4 KiB, in whole lines. A longer line is a batch of its own.
func TestBatchSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		log := plainText(accesslog.NewBatch(out))
		log.Info("x", slog.Int("n", 1))
		for i := 2; i <= 300; i++ {
			log.Info("x", slog.Int("n", i))
		}
		got := out.String()
		check.Equal(t, "log", got, numbered(1, strings.Count(got, "\n")))
		check.Equal(t, "batch", len(got) > 4000 && len(got) <= 4096+len(numbered(1, 1)), true)
		check.Equal(t, "writes", out.numWrites(), 2)
		long := strings.Repeat("x", 10_000)
		log.Info("x", slog.String("long", long))
		check.Equal(t, "log before the long line", out.String(), numbered(1, 300))
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "log with the long line", out.String(), numbered(1, 300)+"level=INFO msg=x long="+long+"\n")
	})
}

// A warning or an error is written at once, after all lines before it.
func TestBatchWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		log := plainText(accesslog.NewBatch(out))
		log.Info("x", slog.Int("n", 1))
		log.Info("x", slog.Int("n", 2))
		log.With(slog.String("a", "b")).Warn("x")
		log.Info("x", slog.Int("n", 3))
		log.WithGroup("g").Error("y", slog.String("a", "b"))
		check.Equal(t, "log", out.String(), numbered(1, 2)+"level=WARN msg=x a=b\n"+numbered(3, 3)+"level=ERROR msg=y g.a=b\n")
	})
}

// After Unbuffer each line is written at once.
func TestUnbuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		b := accesslog.NewBatch(out)
		log := plainText(b)
		for i := 1; i <= 3; i++ {
			log.Info("x", slog.Int("n", i))
		}
		check.OK(t, b.Unbuffer())
		check.Equal(t, "log", out.String(), numbered(1, 3))
		log.Info("x", slog.Int("n", 4))
		check.Equal(t, "log after it", out.String(), numbered(1, 4))
	})
}

// A full disk loses only what exceeds a batch. The lines before and after it are whole.
func TestBatchOfFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		b := accesslog.NewBatch(out)
		log := plainText(b)
		const cut = 30
		log.Info("x", slog.Int("n", 1))
		out.setRoom(cut)
		log.Info("x", slog.Int("n", 2))
		log.Info("x", slog.Int("n", 3))
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "log", out.String(), numbered(1, 3)[:len(numbered(1, 1))+cut])
		last := 3
		for ; len(numbered(2, last+1))-cut <= 4096; last++ {
			log.Info("x", slog.Int("n", last+1))
		}
		log.Info("lost")
		log.Warn("lost")
		check.ErrorSays(t, b.Unbuffer(), "2 lines of the log lost: no space left")
		out.setRoom(-1)
		log.Info("x")
		want := numbered(1, last) + "level=INFO msg=x\nlevel=WARN msg=\"log lines could not be written\" lost=2 error=\"no space left\"\n"
		check.Equal(t, "log with room again", out.String(), want)
		check.OK(t, b.Unbuffer())
		log.Info("y")
		check.Equal(t, "log", out.String(), want+"level=INFO msg=y\n")
	})
}

// If the reader of the log blocks, callers wait, and the log has all lines in the end.
func TestBatchOfBlockedReader(t *testing.T) {
	out := newOutput()
	out.entered, out.block = make(chan struct{}), make(chan struct{})
	b := accesslog.NewBatch(out)
	log := plainText(b)
	var all sync.WaitGroup
	var done atomic.Int64
	for range 50 {
		all.Go(func() {
			log.Info("x")
			done.Add(1)
		})
	}
	<-out.entered
	check.Equal(t, "callers who did not wait", done.Load(), 0)
	close(out.block)
	all.Wait()
	check.OK(t, b.Unbuffer())
	check.Equal(t, "log", out.String(), strings.Repeat("level=INFO msg=x\n", 50))
}

// Lines of a goroutine keep their order among those of others.
func TestBatchAtOnce(t *testing.T) {
	out := newOutput()
	b := accesslog.NewBatch(out)
	log := plainText(b)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				if i%100 == 99 {
					log.Warn("x", slog.Int("g", g), slog.Int("i", i))
				} else {
					log.Info("x", slog.Int("g", g), slog.Int("i", i))
				}
			}
		})
	}
	all.Wait()
	check.OK(t, b.Unbuffer())
	next := map[int]int{}
	for line := range strings.Lines(out.String()) {
		var level string
		var g, i int
		_, err := fmt.Sscanf(line, "level=%s msg=x g=%d i=%d\n", &level, &g, &i)
		check.OK(t, err)
		check.Equal(t, "line of its goroutine", i, next[g])
		next[g]++
	}
	check.Equal(t, "lines", strings.Count(out.String(), "\n"), 8*500)
}
