package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
