// Package observed wraps a [store.Backend]. It reports each operation to an [Observer]. Operations
// of requests enter a [storequeue.Queue] first, which may make them wait or refuse them. Apart from the
// errors of such refusals, arguments and results pass unchanged.
//
//	data := observed.New(backend, observed.Options{Observer: metrics, Queue: queue, Pauser: shedder})
//
// Operations without a request in their context, such as background work, never wait. Commands that
// open a store while no server runs do not wrap it.
package observed

import (
	"context"
	"errors"

	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/store"
)

// Observer measures operations. It is safe for concurrent use.
type Observer interface {
	// Begin is called before an operation, such as get_users. The operation gets the context that
	// Begin returns. end is called after the operation, and gets whether the store failed.
	Begin(ctx context.Context, operation string) (_ context.Context, end func(failed bool))
	store.Reporter
}

// Pauser counts the requests being processed. Requests in an operation, or waiting for one, do not
// count. [overload.Shedder] implements it.
type Pauser interface {
	Pause(ctx context.Context)
	Resume(ctx context.Context)
}

// Options configure a [Backend].
type Options struct {
	Observer Observer
	Queue    *storequeue.Queue // nil: no operation waits
	Pauser   Pauser            // nil without a queue
}

// Backend is a wrapped [store.Backend]. Its methods also return the errors of [storequeue.Queue.Enter].
//
// A request must not use the store in the callback of List or History: it would wait for a second
// slot in the store queue while it holds one.
type Backend struct {
	backend store.Backend
	o       Options
}

var (
	_ store.Backend  = (*Backend)(nil)
	_ store.Reporter = (*Backend)(nil)
)

// New wraps the backend.
func New(b store.Backend, o Options) *Backend { return &Backend{b, o} }

// do runs an operation. The observer's time does not include the wait. A refusal does not count as
// a failure of the store.
func (b *Backend) do(ctx context.Context, operation string, call func(context.Context) error) (err error) {
	if b.o.Queue == nil {
		return b.observe(ctx, operation, call)
	}
	b.o.Pauser.Pause(ctx)
	defer b.o.Pauser.Resume(ctx)
	pass, err := b.o.Queue.Enter(ctx)
	if err != nil {
		return err
	}
	measured := false // stays false if call panics
	defer func() { pass.Leave(measured) }()
	err = b.observe(ctx, operation, call)
	measured = answered(err)
	return err
}

func (b *Backend) observe(ctx context.Context, operation string, call func(context.Context) error) (err error) {
	ctx, end := b.o.Observer.Begin(ctx, operation)
	defer func() { end(failed(err)) }()
	return call(ctx)
}

// answered reports whether the duration of the call shows how fast the store is. A refused
// connection takes no time, and neither does a call abandoned by its caller.
func answered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || !failed(err) && !errors.Is(err, context.Canceled)
}

// failed reports whether the error is a failure of the store.
func failed(err error) bool {
	if err == nil {
		return false
	}
	for _, answer := range []error{
		store.ErrConflict, store.ErrNotFound, store.ErrUnreadable, store.ErrMarkLost, context.Canceled,
	} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

// visit runs an operation with a callback. An error of the callback does not count as a failure of
// the store.
func visit[T any](ctx context.Context, b *Backend, operation string, each func(T) error, call func(context.Context, func(T) error) error) error {
	var own error
	err := b.do(ctx, operation, func(ctx context.Context) error {
		err := call(ctx, func(v T) error {
			own = each(v)
			return own
		})
		if own != nil {
			return nil //nolint:nilerr // the error of each
		}
		return err
	})
	if own != nil {
		return own
	}
	return err
}
