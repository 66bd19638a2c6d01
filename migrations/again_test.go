package migrations

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestUpWaits: what another operation keeps from running is repeated until it runs.
func TestUpWaits(t *testing.T) {
	all := All()
	for name, tt := range map[string]struct {
		command, codeName, message string
		code                       int
	}{
		"a conflict":                       {"collMod", "WriteConflict", "try again", 112},
		"a lock":                           {"createIndexes", "LockTimeout", "cannot take the lock", 24},
		"another operation":                {"createIndexes", "ConflictingOperationInProgress", "busy", 117},
		"a build in the database":          {"createIndexes", "BackgroundOperationInProgressForDatabase", "busy", 12586},
		"a build in the collection":        {"collMod", "BackgroundOperationInProgressForNamespace", "busy", 12587},
		"a build of the same index":        {"createIndexes", "IndexBuildAlreadyInProgress", "busy", 40333},
		"a build, by its text":             {"createIndexes", "", "Existing index build in progress on the same collection", 0},
		"a deadlock, by its text":          {"createIndexes", "", "ERROR: deadlock detected (SQLSTATE 40P01)", 0},
		"a deadlock, as an internal error": {"collMod", "InternalError", "Deadlock detected", 1},
		"a conflict, by its text":          {"collMod", "InternalError", "could not serialize access due to concurrent update", 1},
		"a deadlock of the record":         {"insert", "", "deadlock detected", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, proxy := behindProxy(t)
			var mu sync.Mutex
			refused := 0
			proxy.Alter(mongotest.Alteration{Answer: func(c bson.D) bson.D {
				mu.Lock()
				defer mu.Unlock()
				if c[0].Key != tt.command || refused == 2 {
					return nil
				}
				refused++
				return mongotest.Refusal(tt.code, tt.codeName, tt.message)
			}})
			report, err := Up(t.Context(), db)
			if err != nil || names(report.Applied) != names(all) {
				t.Errorf("%+v, %v", report, err)
			}
			check.Equal(t, "refused", refused, 2)
		})
	}
}

// TestAgain: repeating ends with the context, and after a time also without.
func TestAgain(t *testing.T) {
	busy := mongo.CommandError{Code: 12587, Message: "busy"}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun, tries := time.Now(), 0
		err := again(ctx, func() error { tries++; return busy })
		if !errors.Is(err, context.DeadlineExceeded) || !hasCode(err, 12587) || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		if tries < 60 || tries > 70 {
			t.Errorf("%d tries in a minute", tries)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err := again(t.Context(), func() error { return busy })
		if !hasCode(err, 12587) || time.Since(begun) < retryFor || time.Since(begun) > retryFor+2*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

func hasCode(err error, code int) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && server.HasErrorCode(code)
}
