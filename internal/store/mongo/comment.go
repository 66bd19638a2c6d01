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

// Find is that of the driver, with a comment.
func (c collection) Find(ctx context.Context, filter any, opts ...options.Lister[options.FindOptions]) (*mongo.Cursor, error) {
	return c.Collection.Find(ctx, filter, append(opts, options.Find().SetComment(comment(ctx)))...)
}

// FindOne is that of the driver, with a comment.
func (c collection) FindOne(ctx context.Context, filter any, opts ...options.Lister[options.FindOneOptions]) *mongo.SingleResult {
	return c.Collection.FindOne(ctx, filter, append(opts, options.FindOne().SetComment(comment(ctx)))...)
}

// Aggregate is that of the driver, with a comment.
func (c collection) Aggregate(ctx context.Context, pipeline any, opts ...options.Lister[options.AggregateOptions]) (*mongo.Cursor, error) {
	return c.Collection.Aggregate(ctx, pipeline, append(opts, options.Aggregate().SetComment(comment(ctx)))...)
}

// InsertOne is that of the driver, with a comment.
func (c collection) InsertOne(ctx context.Context, doc any, opts ...options.Lister[options.InsertOneOptions]) (*mongo.InsertOneResult, error) {
	return c.Collection.InsertOne(ctx, doc, append(opts, options.InsertOne().SetComment(comment(ctx)))...)
}

// ReplaceOne is that of the driver, with a comment.
func (c collection) ReplaceOne(ctx context.Context, filter, doc any, opts ...options.Lister[options.ReplaceOptions]) (*mongo.UpdateResult, error) {
	return c.Collection.ReplaceOne(ctx, filter, doc, append(opts, options.Replace().SetComment(comment(ctx)))...)
}

// UpdateOne is that of the driver, with a comment.
func (c collection) UpdateOne(ctx context.Context, filter, update any, opts ...options.Lister[options.UpdateOneOptions]) (*mongo.UpdateResult, error) {
	return c.Collection.UpdateOne(ctx, filter, update, append(opts, options.UpdateOne().SetComment(comment(ctx)))...)
}

// DeleteOne is that of the driver, with a comment.
func (c collection) DeleteOne(ctx context.Context, filter any, opts ...options.Lister[options.DeleteOneOptions]) (*mongo.DeleteResult, error) {
	return c.Collection.DeleteOne(ctx, filter, append(opts, options.DeleteOne().SetComment(comment(ctx)))...)
}

// DeleteMany is that of the driver, with a comment.
func (c collection) DeleteMany(ctx context.Context, filter any, opts ...options.Lister[options.DeleteManyOptions]) (*mongo.DeleteResult, error) {
	return c.Collection.DeleteMany(ctx, filter, append(opts, options.DeleteMany().SetComment(comment(ctx)))...)
}

// BulkWrite is that of the driver, with a comment.
func (c collection) BulkWrite(ctx context.Context, models []mongo.WriteModel, opts ...options.Lister[options.BulkWriteOptions]) (*mongo.BulkWriteResult, error) {
	return c.Collection.BulkWrite(ctx, models, append(opts, options.BulkWrite().SetComment(comment(ctx)))...)
}
