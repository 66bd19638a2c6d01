package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
)

func TestTeardownRunsInReverse(t *testing.T) {
	var order []string
	var undo teardown
	for _, name := range []string{"first", "second", "third"} {
		undo.push(name, func(context.Context) error {
			order = append(order, name)
			return errors.New(name + " failed")
		})
	}
	late, err := undo.run(t.Context())
	if want := []string{"third", "second", "first"}; !slices.Equal(order, want) {
		t.Errorf("stopped %v, want %v", order, want)
	}
	if len(late) != 0 || err == nil || strings.Count(err.Error(), "failed") != 3 {
		t.Errorf("not every failure is reported: %v", err)
	}
	if _, err := undo.run(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("a second run stopped something again: %v, %v", order, err)
	}
}

func TestTeardownLeavesAStepBehindThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		closed := false
		var undo teardown
		undo.push("the store", func(context.Context) error { closed = true; return nil })
		undo.push("something deaf", func(context.Context) error { <-release; return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late, err := undo.run(ctx)
		synctest.Wait()
		if err != nil || !slices.Equal(late, []string{"something deaf"}) {
			t.Errorf("run() = %v, %v", late, err)
		}
		if !closed {
			t.Error("what follows was not stopped")
		}
	})
}

// TestStopOrder checks the order of starts, which the stop reverses: requests end before the counts
// are written, the counts are written before the store closes, and operators can watch all of it.
func TestStopOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	server, err := New(ctx, withOperators(t), Options{Listening: func(s *Server) {
		for _, step := range s.undo.steps {
			got = append(got, step.name)
		}
		cancel()
	}})
	check.OK(t, err)
	if err := server.Run(ctx); err != nil {
		t.Error(err)
	}
	want := []string{
		"tracing", "listening", "listening for operators", "the store",
		"background loops", "the last uses of secrets", "serving operators",
		"the admin address beside the data file", "sharing the counts", "bans that are not stored", "serving",
	}
	check.Equal(t, "started", got, want)
}

func TestWithShareLeavesTimeForTheNextStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		part, end := withShare(ctx, 3.0/4)
		defer end()
		if deadline, ok := part.Deadline(); !ok || time.Until(deadline) != 45*time.Second {
			t.Errorf("it ends in %v, want in 45 s", time.Until(deadline))
		}
		all, end := withShare(t.Context(), 3.0/4)
		defer end()
		if _, ok := all.Deadline(); ok {
			t.Error("without a deadline there is one")
		}
	})
}
