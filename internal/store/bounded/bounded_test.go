package bounded_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/bounded"
	"oauth-server/internal/store/watched"
)

// backend answers User, and nothing else.
type backend struct {
	grants.Store
	user func() (grants.User, error)
}

func (b *backend) User(context.Context, string) (grants.User, error) { return b.user() }

func newLane() *lane.Lane {
	return lane.New(lane.Options{Max: 1, Mode: ratelimit.Enforce})
}

// TestEveryMethodWaits: with a full lane, each is refused, and the backend is not called; with a free one it is, and
// the pass is given back even after a panic. The backend has no methods, so calling it is a nil dereference.
func TestEveryMethodWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane()
		s := reflect.ValueOf(bounded.New(struct{ grants.Store }{}, l, admission.New(admission.DefaultSettings(), nil)))
		contract := reflect.TypeFor[grants.Store]()
		for i := range contract.NumMethod() {
			name := contract.Method(i).Name
			if _, panicked := call(s.MethodByName(name), lane.NewRequest(t.Context())); !panicked {
				t.Errorf("%s does not reach the backend", name)
			}
			check.Equal(t, name+": in flight afterwards", l.Stats().InFlight, 0)
			pass, err := l.Enter(lane.NewRequest(t.Context()))
			check.OK(t, err)
			err, panicked := call(s.MethodByName(name), lane.NewRequest(t.Context()))
			var shed *admission.ShedError
			if panicked || !errors.As(err, &shed) {
				t.Errorf("%s with a full lane: %v, panic %v, want a refusal", name, err, panicked)
			}
			pass.Leave(true)
		}
		refused := l.Stats().Calls
		check.Equal(t, "refused", refused.Of(admission.Shed), uint64(contract.NumMethod()))
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

func TestResultsArePassedOn(t *testing.T) {
	for _, want := range []error{nil, grants.ErrNotFound} {
		b := &backend{user: func() (grants.User, error) { return grants.User{Name: "alice"}, want }}
		user, err := bounded.New(b, newLane(), admission.New(admission.DefaultSettings(), nil)).User(lane.NewRequest(t.Context()), "alice")
		if err != want || user.Name != "alice" { //nolint:errorlint // the very error
			t.Errorf("User() = %q, %v, want alice, %v", user.Name, err, want)
		}
	}
}

type failures int

func (f *failures) Begin(ctx context.Context, _ string) (context.Context, func(bool)) {
	return ctx, func(failed bool) {
		if failed {
			*f++
		}
	}
}

// TestRefusalIsNoFailureOfTheStore: it never reaches what counts those.
func TestRefusalIsNoFailureOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counted failures
		l := newLane()
		s := bounded.New(watched.New(nil, &counted), l, admission.New(admission.DefaultSettings(), nil))
		_, err := l.Enter(lane.NewRequest(t.Context()))
		check.OK(t, err)
		if _, err := s.User(lane.NewRequest(t.Context()), "alice"); err == nil {
			t.Error("User() was not refused")
		}
		check.Equal(t, "failures of the store", counted, 0)
	})
}

// TestFailuresDoNotLookQuick: refused connections take no time. If they counted as answers, the store would look slow
// as soon as it is back, and the limit would fall.
func TestFailuresDoNotLookQuick(t *testing.T) {
	tests := map[string]struct {
		err    error
		counts bool
	}{
		"answer":          {nil, true},
		"not found":       {fmt.Errorf("user: %w", grants.ErrNotFound), true},
		"took too long":   {fmt.Errorf("user: %w", context.DeadlineExceeded), true},
		"refused":         {errors.New("connection refused"), false},
		"caller has gone": {context.Canceled, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most = 40
				l := lane.New(lane.Options{Max: most, Min: 1, Mode: ratelimit.Enforce})
				took, result := time.Millisecond, tt.err
				s := bounded.New(&backend{user: func() (grants.User, error) {
					time.Sleep(took) //nolint:forbidigo // simulated time
					return grants.User{}, result
				}}, l, admission.New(admission.DefaultSettings(), nil))
				lookup := func(n int) {
					for range n {
						_, _ = s.User(lane.NewRequest(t.Context()), "alice")
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
