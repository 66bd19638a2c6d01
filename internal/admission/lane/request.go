package lane

import (
	"context"
	"sync/atomic"

	"oauth-server/internal/admission"
)

// request is what the calls of a request share.
type request struct {
	started atomic.Bool // a call was let in
	refused atomic.Bool // a call was refused, or in dry-run would have been
}

type requestKey struct{}

// NewRequest returns the context of a request. It has the lowest rank until another is set.
func NewRequest(ctx context.Context) context.Context {
	return context.WithValue(admission.WithRank(ctx, 0), requestKey{}, new(request))
}

// requestOf returns what the calls of the request share; without [NewRequest], what nothing shares.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return new(request)
}
