package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// collection holds a document for each applied migration.
const collection = "migrations"

// Server error codes, https://www.mongodb.com/docs/manual/reference/error-codes/
const namespaceExists = 48

// passing are the errors of a server on which another operation is in the way and ends by itself. Servers on top of
// PostgreSQL report its deadlocks and conflicts as internal errors, by their text only. An index build that failed does not
// pass: its documents have to be mended.
var passing = struct {
	codes []int
	texts []string
}{
	codes: []int{
		24,    // LockTimeout
		46,    // LockBusy
		112,   // WriteConflict
		117,   // ConflictingOperationInProgress
		12586, // BackgroundOperationInProgressForDatabase
		12587, // BackgroundOperationInProgressForNamespace
		40333, // IndexBuildAlreadyInProgress
	},
	texts: []string{"deadlock", "could not serialize access", "index build in progress", "index build is in progress", "index build already in progress"},
}

// passes reports whether the error is one of a server that may be asked again.
func passes(err error) bool {
	var server mongo.ServerError
	if !errors.As(err, &server) {
		return false
	}
	if slices.ContainsFunc(passing.codes, server.HasErrorCode) {
		return true
	}
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc(passing.texts, func(t string) bool { return strings.Contains(text, t) })
}

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

// retryFor is how long a command is repeated. Building an index on a large collection takes minutes.
const retryFor = 10 * time.Minute

// runCommand runs a command or a step.
func runCommand(ctx context.Context, db *mongo.Database, c Command) error {
	return again(ctx, func() error {
		if c.Step != "" {
			return steps[c.Step](ctx, db)
		}
		err := db.RunCommand(ctx, c.Run).Err()
		if c.Run[0].Key == "create" && hasCode(err, namespaceExists) {
			return nil
		}
		return err
	})
}

// again repeats what may run twice while it fails because of another operation, at most for [retryFor].
func again(ctx context.Context, do func() error) error {
	begun := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if err == nil || !passes(err) || time.Since(begun) > retryFor {
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
	return again(ctx, func() error {
		_, err := db.Collection(collection).InsertOne(ctx, entry{
			Number: m.Number, Name: m.Name, Checksum: m.Checksum, AppliedAt: time.Now(),
		})
		if mongo.IsDuplicateKeyError(err) {
			return nil
		}
		return err
	})
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
