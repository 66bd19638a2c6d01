package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// collection holds a document for each applied migration.
const collection = "migrations"

// Server error codes, https://www.mongodb.com/docs/manual/reference/error-codes/
const (
	namespaceExists     = 48
	writeConflict       = 112
	conflictingOpUnderW = 117
)

// Report has what [Up] did.
type Report struct {
	Applied []Migration
	// Lacking has one sentence for each feature that the server does not offer and the database
	// does without, with the migrations that it belongs to.
	Lacking []string
}

// Up applies the pending migrations in order, and records each. It may run in many processes at
// once and be interrupted anywhere: the next run repeats what was not recorded. After an error the
// report has what was applied until then.
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

// apply runs the commands of a migration and records it. It returns what the server lacks.
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

// runCommand runs a command or a step. It repeats a command while it fails because another process runs the same.
func runCommand(ctx context.Context, db *mongo.Database, c Command) error {
	if c.Step != "" {
		return steps[c.Step](ctx, db)
	}
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

// record records the migration. Another process may have recorded it before.
func record(ctx context.Context, db *mongo.Database, m Migration) error {
	_, err := db.Collection(collection).InsertOne(ctx, entry{
		Number: m.Number, Name: m.Name, Checksum: m.Checksum, AppliedAt: time.Now(),
	})
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

// entry is the document of an applied migration.
type entry struct {
	Number    int       `bson:"_id"`
	Name      string    `bson:"name"`
	Checksum  string    `bson:"checksum"`
	AppliedAt time.Time `bson:"appliedAt"`
}

// recorded returns the applied migrations by number.
func recorded(ctx context.Context, db *mongo.Database) (map[int]entry, error) {
	cursor, err := db.Collection(collection).Find(ctx, bson.D{}, options.Find().SetComment("oauth-server: read migrations"))
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
