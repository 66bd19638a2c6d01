package storequeue

import (
	"context"
	"sync/atomic"
)

// request is the state shared by the calls of a request.
type request struct {
	started atomic.Bool // a call was admitted
	refused atomic.Bool // a call was refused, or in dry-run mode would have been
}

type requestKey struct{}

// NewRequest returns the context of a request. Its rank is the one from [overload.RankFrom].
func NewRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, new(request))
}

// requestOf returns the shared state of the request, or nil without [NewRequest].
func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}
