package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
)

// ttlWait is how long --wait-ttl waits. The TTL monitor of MongoDB runs once a minute, and may be
// late.
const ttlWait = 3 * time.Minute

// errInexact means that a check failed that exact counting depends on.
var errInexact = errors.New("counts would not be exact on this database: see the failed checks above, and docs/deployment.md")

func newMigrateVerify(c *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that counts are exact on this database", Args: command.Takes(),
		Long: `Check that counts are exact on this database server.

The checks write to a scratch collection with a random name, and remove it at the end, even after
an error or Ctrl-C. Nothing else is changed. The user needs the right to create and drop a
collection (readWrite).

The exit status is 1 if counts would not be exact, or if a check could not run. Missing TTL
deletion is reported, but is not a failure. docs/deployment.md describes the checks by number.`,
		Example: `  oauth-server migrate verify --mongodb-uri mongodb://localhost
  oauth-server migrate verify --wait-ttl -o json --mongodb-uri mongodb://localhost`,
	}
	wait := cmd.Flags().Bool("wait-ttl", false, "also wait up to three minutes for the server to delete an expired document")
	return onMigrator(c, cmd, func(ctx context.Context, db app.Migrator) error {
		options := app.VerifyOptions{}
		if *wait {
			options.WaitTTL = ttlWait
			options.Waiting = func(elapsed time.Duration) {
				c.Note("waiting for the server to delete an expired document: %s of %s", elapsed, ttlWait)
			}
		}
		return verifyDatabase(ctx, c, db, options)
	})
}

// verifyDatabase runs the checks and writes their results, even if an error ended them.
func verifyDatabase(ctx context.Context, c *command.Env, db app.Migrator, options app.VerifyOptions) error {
	found, err := db.Verify(ctx, options)
	if len(found.Checks) == 0 {
		return err
	}
	exact := len(found.Inexact()) == 0
	if err == nil && !exact {
		err = errInexact
	}
	if c.Output == command.OutputJSON {
		return errors.Join(c.JSON(struct {
			Exact bool `json:"exact"`
			app.Verification
		}{exact, found}), err)
	}
	return errors.Join(c.Table(verificationRows(found)...), err)
}

// verificationRows returns the table of checks. A check with a consequence shows it before the
// observed detail; other checks show the detail only.
func verificationRows(found app.Verification) [][]string {
	rows := [][]string{{"", "CHECK", "RESULT", "WHAT FOLLOWS"}}
	for _, check := range found.Checks {
		follows := check.Detail
		if check.Follows != "" {
			follows = check.Follows + "; seen: " + check.Detail
		}
		rows = append(rows, []string{strconv.Itoa(check.Number), check.Name, string(check.Status), follows})
	}
	return rows
}
