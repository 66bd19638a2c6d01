package lane

import (
	"context"
	"sync/atomic"
)

// request is what the calls of a request share.
type request struct {
	started atomic.Bool // a call was let in
	refused atomic.Bool // a call was refused, or in dry-run would have been
}

type requestKey struct{}

// NewRequest returns the context of a request. Its rank is that of [admission.RankFrom].
func NewRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, new(request))
}

// requestOf returns what the calls of the request share; nil without [NewRequest].
func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}
