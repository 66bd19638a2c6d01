package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/cluster"
	"oauth-server/internal/simulate/traffic"
)

var errSource = errors.New("the log is damaged")

// ending is a source that calls end at its hundredth request, and returns an error or panics a
// little later.
type ending struct {
	traffic.Source

	end      func()
	panics   bool
	requests int
}

func (e *ending) Next(r *traffic.Request) bool {
	e.requests++
	switch {
	case e.requests == 100:
		e.end()
	case e.requests == 110 && e.panics:
		panic(errSource)
	case e.requests == 110:
		return false
	}
	return e.Source.Next(r)
}

func (*ending) Err() error { return errSource }

// earlyEnd runs a cluster with the source. It returns the error, or the value of the source's
// panic.
func earlyEnd(ctx context.Context, plain bool, src *ending) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err, _ = v.(error)
		}
	}()
	src.Source = &cluster.Poisson{Begin: noon, Duration: time.Minute, Rate: 30, Users: 3}
	_, err = cluster.Run(ctx, config(func(c *cluster.Config) { c.Flush.Plain = plain }), src)
	return err
}

// TestEarlyEnd: no goroutine stays behind, however a run ends early. TestMain checks that.
func TestEarlyEnd(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		for _, panics := range []bool{false, true} {
			src := &ending{end: func() {}, panics: panics}
			check.Equal(t, "error", errors.Is(earlyEnd(t.Context(), plain, src), errSource), true)
		}
		ctx, cancel := context.WithCancel(t.Context())
		src := &ending{end: cancel}
		check.Equal(t, "error", errors.Is(earlyEnd(ctx, plain, src), context.Canceled), true)
		check.Equal(t, "requests", src.requests, 100)
	}
}
