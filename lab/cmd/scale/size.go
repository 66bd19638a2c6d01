package main

import (
	"context"
	"errors"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"                        //nolint:depguard // counts what is in a file, of any release
	"go.mongodb.org/mongo-driver/v2/bson"          //nolint:depguard // the same for MongoDB
	"go.mongodb.org/mongo-driver/v2/mongo"         //nolint:depguard // the same
	"go.mongodb.org/mongo-driver/v2/mongo/options" //nolint:depguard // the same
)

// size is what a store holds.
type size struct{ bytes, records int64 }

// size returns what the store holds: of a file the pages that are in use, with the index; on MongoDB the
// documents of grants, without indexes. No server may have the file open.
func (s *store) size(ctx context.Context) (size, error) {
	if s.kind == embedded {
		return sizeOfFile(s.file)
	}
	return s.sizeOfGrants(ctx)
}

func sizeOfFile(path string) (all size, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return all, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			stats := b.Stats()
			all.bytes += int64(stats.BranchAlloc + stats.LeafAlloc)
			all.records += int64(stats.KeyN)
			return nil
		})
	})
}

func (s *store) sizeOfGrants(ctx context.Context) (all size, err error) {
	err = s.onDatabase(ctx, func(db *mongo.Database) error {
		cursor, err := db.Collection("grants").Find(ctx, bson.D{}, options.Find().SetBatchSize(10_000))
		if err != nil {
			return err
		}
		for cursor.Next(ctx) {
			all.bytes, all.records = all.bytes+int64(len(cursor.Current)), all.records+1
		}
		return errors.Join(cursor.Err(), cursor.Close(ctx))
	})
	return all, err
}

func (s *store) onDatabase(ctx context.Context, do func(db *mongo.Database) error) error {
	conn, err := mongo.Connect(options.Client().ApplyURI(s.uri))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Disconnect(ctx) }()
	return do(conn.Database(s.database))
}

// drop removes the store.
func (s *store) drop(ctx context.Context) error {
	if s.kind == embedded {
		return os.Remove(s.file)
	}
	return s.onDatabase(ctx, func(db *mongo.Database) error { return db.Drop(ctx) })
}
