package watched_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/store"
	"oauth-server/internal/store/watched"
	"oauth-server/internal/syncer"
)

// diary notes operations; its context carries the name of the operation.
type diary struct {
	operations []string
	failed     []bool
}

type operationKey struct{}

func (d *diary) Begin(ctx context.Context, operation string) (context.Context, func(bool)) {
	d.operations = append(d.operations, operation)
	return context.WithValue(ctx, operationKey{}, operation), func(failed bool) { d.failed = append(d.failed, failed) }
}

// backend answers every operation with err and remembers what it was given.
type backend struct {
	store.Serving
	err  error
	seen context.Context //nolint:containedctx // to look at what arrived
}

func (b *backend) User(ctx context.Context, name string) (grants.User, error) {
	b.seen = ctx
	return grants.User{Name: name}, b.err
}

func TestOperationsAreTold(t *testing.T) {
	tests := map[string]struct {
		err    error
		failed bool
	}{
		"done":        {nil, false},
		"not found":   {fmt.Errorf("user: %w", grants.ErrNotFound), false},
		"claimed":     {grants.ErrClaimed, false},
		"conflict":    {clientcfg.ErrConflict, false},
		"key exists":  {keys.ErrExists, false},
		"no clock":    {fmt.Errorf("clock: %w", syncer.ErrNoClock), false},
		"client gone": {context.Canceled, false},
		"timeout":     {context.DeadlineExceeded, true},
		"broken":      {errors.New("connection refused"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, b := &diary{}, &backend{err: tt.err}
			user, err := watched.New(b, d).User(context.Background(), "alice")
			require.Equal(t, tt.err, err)
			require.Equal(t, "alice", user.Name)
			require.Equal(t, []string{"read_user"}, d.operations)
			require.Equal(t, []bool{tt.failed}, d.failed)
			require.Equal(t, "read_user", b.seen.Value(operationKey{}))
		})
	}
}

// Every method of the backends is told under a name of its own, and passed on.
// The backends here have no methods, so passing on is a nil dereference.
func TestEveryMethodIsWatched(t *testing.T) {
	d := &diary{}
	watchedStores := map[any]reflect.Type{
		watched.New(&backend{}, d):                                reflect.TypeFor[store.Serving](),
		watched.NewPolicies(struct{ clientcfg.PolicyStore }{}, d): reflect.TypeFor[clientcfg.PolicyStore](),
		watched.NewCounters(struct{ syncer.Store }{}, d):          reflect.TypeFor[syncer.Store](),
	}
	names, calls := map[string]bool{}, 0
	for store, contract := range watchedStores {
		for i := range contract.NumMethod() {
			call(reflect.ValueOf(store).MethodByName(contract.Method(i).Name))
			calls++
			require.Len(t, d.operations, calls, contract.Method(i).Name)
			name := d.operations[calls-1]
			require.False(t, names[name], "%s is the name of two operations", name)
			names[name] = true
		}
	}
	require.Len(t, d.failed, calls)
}

// call calls a method with nothing, and survives it.
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
