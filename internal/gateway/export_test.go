package gateway

import "context"

// CheckNow is Check without the wait for the end.
func (g *Gateway) CheckNow(ctx context.Context) { g.check(ctx) }
