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

// passing are the server errors caused by another operation that will end by itself. Servers on top
// of PostgreSQL report its deadlocks and conflicts as internal errors, recognizable only by their
// text. A failed index build is not among them: its documents have to be repaired.
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

// passes reports whether the command may be retried after the error.
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

// refusals are the errors of servers that speak MongoDB's protocol but do not implement a feature,
// by code and name: a keyword of $jsonSchema, validators as a whole, the command. Some servers send
// only the code or only the name. Every other error (a missing right, no such collection) stops the
// migration, because an operator can fix it.
var refusals = map[int32]string{
	9:   "FailedToParse",
	59:  "CommandNotFound",
	115: "CommandNotSupported",
}

// notOffered returns the missing feature if the error says that the server does not implement the
// command or one of its options; otherwise it returns an empty text.
func notOffered(c Command, err error) string {
	var answer mongo.CommandError
	if errors.As(err, &answer) {
		for code, name := range refusals {
			if answer.Code == code || answer.Name == name {
				message := strings.Join(strings.Fields(answer.Message), " ")
				return fmt.Sprintf("the server does not support validators; continuing without: %s: %s, code %d: %s",
					c.Run[0].Key, name, code, message)
			}
		}
	}
	return ""
}

// Report is the result of [Up].
type Report struct {
	Applied []Migration
	// Lacking has a sentence on optional features that the server lacks, or is empty.
	Lacking []string
}

// Up applies the pending migrations in order, and records each. It may run in many processes at
// once and be interrupted anywhere: the next run repeats the unrecorded ones. After an error the
// report has the migrations applied before it.
func Up(ctx context.Context, db *mongo.Database) (report Report, err error) {
	pending, err := Pending(ctx, db)
	if err != nil {
		return report, err
	}
	for _, m := range pending {
		if err := report.apply(ctx, db, m); err != nil {
			return report, fmt.Errorf("migrations: %s: %w", m, err)
		}
		report.Applied = append(report.Applied, m)
	}
	return report, nil
}

// apply runs the commands of a migration and records it.
func (r *Report) apply(ctx context.Context, db *mongo.Database, m Migration) error {
	for i, c := range m.Commands {
		err := again(ctx, func() error { return db.RunCommand(ctx, c.Run).Err() })
		if lack := notOffered(c, err); c.Optional && lack != "" {
			r.Lacking = append(r.Lacking, lack)[:1]
		} else if err != nil {
			return fmt.Errorf("commands[%d]: %s: %w", i, c.About, err)
		}
	}
	return record(ctx, db, m)
}

// retryFor is the maximum time to retry a command. Building an index on a large collection takes
// minutes.
const retryFor = 10 * time.Minute

// again retries do while another operation makes it fail, at most for [retryFor]. do must be safe
// to run twice.
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

// record records the migration. Another process may have recorded it before.
func record(ctx context.Context, db *mongo.Database, m Migration) error {
	return again(ctx, func() error {
		_, err := db.Collection(collection).InsertOne(ctx, entry{
			Number: m.Number, Name: m.Name, Checksum: m.Checksum(), AppliedAt: time.Now(),
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
		return nil, fmt.Errorf("migrations: read applied migrations: %w", err)
	}
	var list []entry
	if err := cursor.All(ctx, &list); err != nil {
		return nil, fmt.Errorf("migrations: read applied migrations: %w", err)
	}
	byNumber := make(map[int]entry, len(list))
	for _, e := range list {
		byNumber[e.Number] = e
	}
	return byNumber, nil
}
