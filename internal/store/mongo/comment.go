package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// collection is a collection whose commands carry a comment with the operation
// that caused them, so that a slow query in the server's log or profile names
// its cause. It shadows the methods that are used here.
type collection struct{ *mongo.Collection }

type operationKey struct{}

// withOperation names the operation that commands of the context belong to.
func withOperation(ctx context.Context, operation string) context.Context {
	return context.WithValue(ctx, operationKey{}, operation)
}

// comment is what commands of the context carry.
func comment(ctx context.Context) string {
	operation, _ := ctx.Value(operationKey{}).(string)
	return "oauth-server: " + operation
}

// first puts an option before those of the caller, so that theirs win. Some
// constructors of the driver preset fields: options.BulkWrite() sets Ordered,
// and after the caller's options it would undo SetOrdered(false).
func first[O any](option options.Lister[O], opts []options.Lister[O]) []options.Lister[O] {
	return append([]options.Lister[O]{option}, opts...)
}

// Find is that of the driver, with a comment.
func (c collection) Find(ctx context.Context, filter any, opts ...options.Lister[options.FindOptions]) (*mongo.Cursor, error) {
	return c.Collection.Find(ctx, filter, first(options.Find().SetComment(comment(ctx)), opts)...)
}

// FindOne is that of the driver, with a comment.
func (c collection) FindOne(ctx context.Context, filter any, opts ...options.Lister[options.FindOneOptions]) *mongo.SingleResult {
	return c.Collection.FindOne(ctx, filter, first(options.FindOne().SetComment(comment(ctx)), opts)...)
}

// Aggregate is that of the driver, with a comment.
func (c collection) Aggregate(ctx context.Context, pipeline any, opts ...options.Lister[options.AggregateOptions]) (*mongo.Cursor, error) {
	return c.Collection.Aggregate(ctx, pipeline, first(options.Aggregate().SetComment(comment(ctx)), opts)...)
}

// InsertOne is that of the driver, with a comment.
func (c collection) InsertOne(ctx context.Context, doc any, opts ...options.Lister[options.InsertOneOptions]) (*mongo.InsertOneResult, error) {
	return c.Collection.InsertOne(ctx, doc, first(options.InsertOne().SetComment(comment(ctx)), opts)...)
}

// ReplaceOne is that of the driver, with a comment.
func (c collection) ReplaceOne(ctx context.Context, filter, doc any, opts ...options.Lister[options.ReplaceOptions]) (*mongo.UpdateResult, error) {
	return c.Collection.ReplaceOne(ctx, filter, doc, first(options.Replace().SetComment(comment(ctx)), opts)...)
}

// UpdateOne is that of the driver, with a comment.
func (c collection) UpdateOne(ctx context.Context, filter, update any, opts ...options.Lister[options.UpdateOneOptions]) (*mongo.UpdateResult, error) {
	return c.Collection.UpdateOne(ctx, filter, update, first(options.UpdateOne().SetComment(comment(ctx)), opts)...)
}

// DeleteOne is that of the driver, with a comment.
func (c collection) DeleteOne(ctx context.Context, filter any, opts ...options.Lister[options.DeleteOneOptions]) (*mongo.DeleteResult, error) {
	return c.Collection.DeleteOne(ctx, filter, first(options.DeleteOne().SetComment(comment(ctx)), opts)...)
}

// DeleteMany is that of the driver, with a comment.
func (c collection) DeleteMany(ctx context.Context, filter any, opts ...options.Lister[options.DeleteManyOptions]) (*mongo.DeleteResult, error) {
	return c.Collection.DeleteMany(ctx, filter, first(options.DeleteMany().SetComment(comment(ctx)), opts)...)
}

// BulkWrite is that of the driver, with a comment.
func (c collection) BulkWrite(ctx context.Context, models []mongo.WriteModel, opts ...options.Lister[options.BulkWriteOptions]) (*mongo.BulkWriteResult, error) {
	return c.Collection.BulkWrite(ctx, models, first(options.BulkWrite().SetComment(comment(ctx)), opts)...)
}

// FindOneAndUpdate is that of the driver, with a comment.
func (c collection) FindOneAndUpdate(ctx context.Context, filter, update any, opts ...options.Lister[options.FindOneAndUpdateOptions]) *mongo.SingleResult {
	return c.Collection.FindOneAndUpdate(ctx, filter, update, first(options.FindOneAndUpdate().SetComment(comment(ctx)), opts)...)
}
