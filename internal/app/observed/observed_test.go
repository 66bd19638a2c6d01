package observed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/app/observed"
	"oauth-server/internal/check"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// diary is an Observer that records operations. Its contexts carry the name of the operation.
type diary struct {
	operations []string
	failures   []bool
}

type operationKey struct{}

func (d *diary) Begin(ctx context.Context, operation string) (context.Context, func(bool)) {
	d.operations = append(d.operations, operation)
	return context.WithValue(ctx, operationKey{}, operation), func(failed bool) { d.failures = append(d.failures, failed) }
}

func (d *diary) Unreadable(table, key string, _ error) {
	d.operations = append(d.operations, "unreadable "+table+" "+key)
}

// quiet is an Observer that keeps nothing.
type quiet struct{}

func (quiet) Begin(ctx context.Context, _ string) (context.Context, func(bool)) {
	return ctx, func(bool) {}
}

func (quiet) Unreadable(string, string, error) {}

// pauses counts the pauses of requests.
type pauses struct{ begun, ended int }

func (p *pauses) Pause(context.Context) { p.begun++ }

func (p *pauses) Resume(context.Context) { p.ended++ }

func wrap(b store.Backend, l *storequeue.Queue) *observed.Backend {
	return observed.New(b, observed.Options{Observer: quiet{}, Queue: l, Pauser: overload.New(overload.DefaultSettings(), nil)})
}

func newQueue() *storequeue.Queue {
	return storequeue.New(storequeue.Options{Max: 1, Mode: ratelimit.Enforce})
}

var table = store.Table{Name: "things"}

// fake answers Now, and Get and List with one record.
type fake struct {
	store.Backend
	now  func(context.Context) error
	fail error
}

func (f *fake) Now(ctx context.Context) (time.Time, error) { return time.Unix(1, 0), f.now(ctx) }

func (f *fake) List(_ context.Context, _ store.Table, _ store.Query, each func(store.Record) error) error {
	if err := each(store.Record{Key: "a"}); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	return f.fail
}

// TestEveryMethod: each method is observed under its own name. With a full queue, each call is
// refused and does not reach the backend. With a free queue it reaches the backend, and leaves the
// queue even after a panic. The backend here has no methods, so a call that reaches it panics.
func TestEveryMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, d, paused := newQueue(), &diary{}, &pauses{}
		b := reflect.ValueOf(observed.New(struct{ store.Backend }{}, observed.Options{
			Observer: d, Queue: l, Pauser: paused,
		}))
		names := map[string]bool{}
		contract := reflect.TypeFor[store.Backend]()
		for i := range contract.NumMethod() {
			name := contract.Method(i).Name
			if name == "Close" {
				continue
			}
			if _, panicked := call(b.MethodByName(name), storequeue.NewRequest(t.Context())); !panicked {
				t.Errorf("%s does not reach the backend", name)
			}
			names[d.operations[len(d.operations)-1]] = true
			check.Equal(t, name+": in flight afterwards", l.Stats().InFlight, 0)
			pass, err := l.Enter(storequeue.NewRequest(t.Context()))
			check.OK(t, err)
			err, panicked := call(b.MethodByName(name), storequeue.NewRequest(t.Context()))
			var shed *overload.ShedError
			if panicked || !errors.As(err, &shed) {
				t.Errorf("%s with a full queue: %v, panic %v, want a refusal", name, err, panicked)
			}
			pass.Leave(true)
		}
		check.Equal(t, "names of operations", len(names), contract.NumMethod()-1)
		check.Equal(t, "operations, without refused ones", len(d.operations), len(names))
		check.Equal(t, "ends of operations", len(d.failures), len(names))
		check.Equal(t, "pauses of requests", *paused, pauses{2 * len(names), 2 * len(names)})
		refused := l.Stats().Calls
		check.Equal(t, "refused", refused.Of(overload.Shed), uint64(len(names)))
	})
}

// call calls a method with zero values, and returns its error.
func call(method reflect.Value, ctx context.Context) (err error, panicked bool) {
	args := make([]reflect.Value, method.Type().NumIn())
	for a := range args {
		args[a] = reflect.Zero(method.Type().In(a))
	}
	args[0] = reflect.ValueOf(ctx)
	defer func() {
		if recover() != nil {
			panicked = true
		}
	}()
	var results []reflect.Value
	if method.Type().IsVariadic() {
		results = method.CallSlice(args)
	} else {
		results = method.Call(args)
	}
	err, _ = results[len(results)-1].Interface().(error)
	return err, false
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		err    error
		failed bool
	}{
		"done":             {nil, false},
		"not found":        {fmt.Errorf("user: %w", store.ErrNotFound), false},
		"conflict":         {store.ErrConflict, false},
		"unreadable":       {store.ErrUnreadable, false},
		"mark lost":        {store.ErrMarkLost, false},
		"caller cancelled": {context.Canceled, false},
		"timeout":          {context.DeadlineExceeded, true},
		"broken":           {errors.New("connection refused"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := &diary{}
			var seen any
			b := observed.New(&fake{now: func(ctx context.Context) error {
				seen = ctx.Value(operationKey{})
				return tt.err
			}}, observed.Options{Observer: d, Queue: newQueue(), Pauser: overload.New(overload.DefaultSettings(), nil)})
			now, err := b.Now(storequeue.NewRequest(t.Context()))
			if err != tt.err || now.Unix() != 1 { //nolint:errorlint // the very error
				t.Errorf("Now() = %v, %v, want %v", now, err, tt.err)
			}
			check.Equal(t, "context of the backend", seen, any("get_clock"))
			check.Equal(t, "operations", slices.Equal(d.operations, []string{"get_clock"}), true)
			check.Equal(t, "failed", d.failures[0], tt.failed)
		})
	}
}

// TestErrorOfTheCallback: it is returned unchanged, and does not count as a failure of the store.
func TestErrorOfTheCallback(t *testing.T) {
	own, down := errors.New("enough"), errors.New("down")
	for _, tt := range []struct {
		each, backend, want error
		failed              bool
	}{{own, nil, own, false}, {nil, down, down, true}, {nil, nil, nil, false}} {
		d := &diary{}
		b := observed.New(&fake{fail: tt.backend}, observed.Options{Observer: d, Queue: newQueue(), Pauser: overload.New(overload.DefaultSettings(), nil)})
		err := b.List(t.Context(), table, store.Query{}, func(store.Record) error { return tt.each })
		if err != tt.want { //nolint:errorlint // the very error
			t.Errorf("List() = %v, want %v", err, tt.want)
		}
		check.Equal(t, "operation", d.operations[0], "list_things")
		check.Equal(t, "failed", d.failures[0], tt.failed)
	}
}

// TestRefusalIsNoFailureOfTheStore: the observer does not see a refusal.
func TestRefusalIsNoFailureOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := &diary{}, newQueue()
		b := observed.New(nil, observed.Options{Observer: d, Queue: l, Pauser: overload.New(overload.DefaultSettings(), nil)})
		_, err := l.Enter(storequeue.NewRequest(t.Context()))
		check.OK(t, err)
		if _, err := b.Now(storequeue.NewRequest(t.Context())); err == nil {
			t.Error("Now() was not refused")
		}
		check.Equal(t, "operations", len(d.operations), 0)
	})
}

// TestFailuresDoNotLookQuick: refused connections take no time. If they counted as answers, the
// store would look slow once it is back, and the limit would fall.
func TestFailuresDoNotLookQuick(t *testing.T) {
	tests := map[string]struct {
		err    error
		counts bool
	}{
		"answer":          {nil, true},
		"not found":       {fmt.Errorf("user: %w", store.ErrNotFound), true},
		"took too long":   {fmt.Errorf("user: %w", context.DeadlineExceeded), true},
		"refused":         {errors.New("connection refused"), false},
		"caller has gone": {context.Canceled, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most = 40
				l := storequeue.New(storequeue.Options{Max: most, Min: 1, Mode: ratelimit.Enforce})
				took, result := time.Millisecond, tt.err
				b := wrap(&fake{now: func(context.Context) error {
					time.Sleep(took) //nolint:forbidigo // simulated time
					return result
				}}, l)
				lookup := func(n int) {
					for range n {
						_, _ = b.Now(storequeue.NewRequest(t.Context()))
					}
				}
				lookup(20_000)
				took, result = 100*time.Millisecond, nil
				lookup(300)
				if fell := l.Stats().Limit < most; fell != tt.counts {
					t.Errorf("the limit is %d of %d after calls of 1 ms and of 100 ms, want it to have fallen: %v", l.Stats().Limit, most, tt.counts)
				}
			})
		})
	}
}
