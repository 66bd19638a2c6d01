package watched_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/store/legacy"
	"oauth-server/internal/store/watched"
	"oauth-server/internal/syncer"
)

// diary records operations; the context it returns carries the name of the operation.
type diary struct {
	operations []string
	failed     []bool
}

type operationKey struct{}

func (d *diary) Begin(ctx context.Context, operation string) (context.Context, func(bool)) {
	d.operations = append(d.operations, operation)
	return context.WithValue(ctx, operationKey{}, operation), func(failed bool) { d.failed = append(d.failed, failed) }
}

// backend answers every operation with err and keeps the context it was called with.
type backend struct {
	legacy.Serving
	err  error
	seen context.Context //nolint:containedctx // to look at what arrived
}

func (b *backend) User(ctx context.Context, name string) (grants.User, error) {
	b.seen = ctx
	return grants.User{Name: name}, b.err
}

func TestOperationsAreObserved(t *testing.T) {
	tests := map[string]struct {
		err    error
		failed bool
	}{
		"done":             {nil, false},
		"not found":        {fmt.Errorf("user: %w", grants.ErrNotFound), false},
		"claimed":          {grants.ErrClaimed, false},
		"conflict":         {clientcfg.ErrConflict, false},
		"key exists":       {keys.ErrExists, false},
		"no clock":         {fmt.Errorf("clock: %w", syncer.ErrNoClock), false},
		"caller cancelled": {context.Canceled, false},
		"timeout":          {context.DeadlineExceeded, true},
		"broken":           {errors.New("connection refused"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, b := &diary{}, &backend{err: tt.err}
			user, err := watched.New(b, d).User(t.Context(), "alice")
			if err != tt.err || user.Name != "alice" { //nolint:errorlint // the very error, not one that wraps it
				t.Errorf("User() = %q, %v, want alice, %v", user.Name, err, tt.err)
			}
			if diff := cmp.Diff([]string{"read_user"}, d.operations); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]bool{tt.failed}, d.failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
			if got := b.seen.Value(operationKey{}); got != "read_user" {
				t.Errorf("the backend was called with the context of operation %v, want read_user", got)
			}
		})
	}
}

// Every method of the backends is observed under a name of its own, and passed on. The backends here
// have no methods, so passing on is a nil dereference.
func TestEveryMethodIsWatched(t *testing.T) {
	d := &diary{}
	watchedStores := map[any]reflect.Type{
		watched.New(&backend{}, d):                                reflect.TypeFor[legacy.Serving](),
		watched.NewPolicies(struct{ clientcfg.PolicyStore }{}, d): reflect.TypeFor[clientcfg.PolicyStore](),
		watched.NewCounters(struct{ syncer.Store }{}, d):          reflect.TypeFor[syncer.Store](),
	}
	names, calls := map[string]bool{}, 0
	for watchedStore, contract := range watchedStores {
		for i := range contract.NumMethod() {
			method := contract.Method(i).Name
			call(reflect.ValueOf(watchedStore).MethodByName(method))
			calls++
			if len(d.operations) != calls {
				t.Fatalf("%s: %d operations after %d calls", method, len(d.operations), calls)
			}
			name := d.operations[calls-1]
			if names[name] {
				t.Fatalf("%s is the name of two operations", name)
			}
			names[name] = true
		}
	}
	if len(d.failed) != calls {
		t.Errorf("%d operations ended, want %d", len(d.failed), calls)
	}
}

// call calls a method with zero values, and recovers from its panic.
func call(method reflect.Value) {
	args := make([]reflect.Value, method.Type().NumIn())
	for a := range args {
		args[a] = reflect.Zero(method.Type().In(a))
	}
	args[0] = reflect.ValueOf(context.Background())
	defer func() { _ = recover() }()
	if method.Type().IsVariadic() {
		method.CallSlice(args)
		return
	}
	method.Call(args)
}
