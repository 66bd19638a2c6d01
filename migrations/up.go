package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// collection holds a document for each applied migration.
const collection = "migrations"

// Server error codes, https://www.mongodb.com/docs/manual/reference/error-codes/
const (
	namespaceExists     = 48
	writeConflict       = 112
	conflictingOpUnderW = 117
)

// Report is what [Up] did.
type Report struct {
	Applied []Migration
	// Lacking names what the server does not offer and the database does
	// without: one sentence for each feature, with the migrations it belongs to.
	Lacking []string
}

// Up applies what is missing, in order, and records it. It may run in many
// processes at once and be cut off anywhere: whoever comes next repeats what
// was not recorded.
func Up(ctx context.Context, db *mongo.Database) (report Report, err error) {
	pending, err := Pending(ctx, db)
	if err != nil {
		return report, err
	}
	var lacking []lack
	for _, m := range pending {
		without, err := apply(ctx, db, m)
		lacking = append(lacking, without...)
		report.Lacking = sentences(lacking)
		if err != nil {
			return report, fmt.Errorf("migrations: %s: %w", m, err)
		}
		report.Applied = append(report.Applied, m)
	}
	return report, nil
}

func apply(ctx context.Context, db *mongo.Database, m Migration) (lacking []lack, err error) {
	for i, c := range m.Commands {
		err := runCommand(ctx, db, c)
		reason, refused := notOffered(err)
		switch {
		case err == nil:
		case c.Optional && refused:
			lacking = append(lacking, lack{c.feature(), m.String(), reason})
		default:
			return lacking, fmt.Errorf("commands[%d]: %s: %w", i, c.About, err)
		}
	}
	return lacking, record(ctx, db, m)
}

// runCommand runs a command until it neither fails for the sake of another
// process that does the same, nor for good.
func runCommand(ctx context.Context, db *mongo.Database, c Command) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := db.RunCommand(ctx, c.Run).Err()
		if err == nil || c.Run[0].Key == "create" && hasCode(err, namespaceExists) {
			return nil
		}
		if !hasCode(err, writeConflict) && !hasCode(err, conflictingOpUnderW) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		}
	}
}

func hasCode(err error, code int) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && server.HasErrorCode(code)
}

// record notes the migration; another process may have been faster.
func record(ctx context.Context, db *mongo.Database, m Migration) error {
	_, err := db.Collection(collection).InsertOne(ctx, entry{
		Number: m.Number, Name: m.Name, Checksum: m.Checksum, AppliedAt: time.Now(),
	})
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

// entry is a migration as recorded.
type entry struct {
	Number    int       `bson:"_id"`
	Name      string    `bson:"name"`
	Checksum  string    `bson:"checksum"`
	AppliedAt time.Time `bson:"appliedAt"`
}

func recorded(ctx context.Context, db *mongo.Database) (map[int]entry, error) {
	cursor, err := db.Collection(collection).Find(ctx, bson.D{})
	if err != nil {
		return nil, fmt.Errorf("migrations: read what was applied: %w", err)
	}
	var list []entry
	if err := cursor.All(ctx, &list); err != nil {
		return nil, fmt.Errorf("migrations: read what was applied: %w", err)
	}
	byNumber := make(map[int]entry, len(list))
	for _, e := range list {
		byNumber[e.Number] = e
	}
	return byNumber, nil
}
