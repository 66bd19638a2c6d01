package mongo

import "context"

type operationKey struct{}

// withOperation names the operation that the commands of the context belong to.
func withOperation(ctx context.Context, operation string) context.Context {
	return context.WithValue(ctx, operationKey{}, operation)
}

// comment returns the comment for a command that is sent with the context: the operation that
// caused it, by which a slow query in the server's log or profile can be traced. Every command that
// reads or writes documents carries it.
func comment(ctx context.Context) string {
	operation, _ := ctx.Value(operationKey{}).(string)
	return "oauth-server: " + operation
}
