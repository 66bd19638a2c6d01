package gateway

import "context"

// CheckNow is Check without the wait for the end.
func (g *Gateway) CheckNow(ctx context.Context) {
	g.check(ctx)
	g.checkIntrospection(ctx)
}

// MostIntrospections is how many questions there are at most, under way and waiting; IntrospectedAtOnce those under way.
const (
	MostIntrospections = introspectedAtOnce + introspectionsWaiting
	IntrospectedAtOnce = introspectedAtOnce
)
