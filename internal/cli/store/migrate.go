package store

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/migrations"
)

// NewMigrate makes the group of the migrate commands. The group takes a flag itself: migrate
// --dry-run is short for migrate up --dry-run.
func NewMigrate(c *command.Env) *cobra.Command {
	cmd := command.Group("migrate", "Migrate a MongoDB database to this release, and check it",
		"  oauth-server migrate --dry-run --mongodb-uri mongodb://localhost\n  oauth-server migrate up --mongodb-uri mongodb://localhost",
		newMigrateUp(c), newMigrateStatus(c), newMigrateVerify(c))
	dry := dryRunFlag(cmd)
	onMigrator(c, cmd, func(ctx context.Context, db app.Migrator) error { return showPlan(ctx, c, db) })
	plan := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 || !*dry {
			return command.NeedsSubcommand(cmd, args)
		}
		return plan(cmd, args)
	}
	return cmd
}

func dryRunFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("dry-run", false, "show the database commands and change nothing")
}

// shownMigration is the output form of a migration.
type shownMigration struct {
	Name      string     `json:"name"`
	About     string     `json:"about"`
	AppliedAt *time.Time `json:"applied_at"` // null while it is pending
	Commands  []string   `json:"commands,omitempty"`
}

func newMigrateUp(c *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "up", Short: "Apply the missing migrations", Args: command.Takes(),
		Long: `Apply the missing migrations in order. You can run this in several places at once, and again after
an interruption. A command that a deadlock or an index build blocks is retried for up to ten
minutes.`,
		Example: `  oauth-server migrate up --dry-run --mongodb-uri mongodb://localhost
  oauth-server migrate up --mongodb-uri mongodb://localhost`,
	}
	dry := dryRunFlag(cmd)
	return onMigrator(c, cmd, func(ctx context.Context, db app.Migrator) error {
		if *dry {
			return showPlan(ctx, c, db)
		}
		return runMigrations(ctx, c, db)
	})
}

func newMigrateStatus(c *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show which migrations the database has", Args: command.Takes(),
		Example: "  oauth-server migrate status --mongodb-uri mongodb://localhost\n  oauth-server migrate status -o json",
	}
	return onMigrator(c, cmd, func(ctx context.Context, db app.Migrator) error {
		states, err := db.Migrations(ctx)
		if err != nil {
			return err
		}
		shown := make([]shownMigration, 0, len(states))
		rows := [][]string{{"MIGRATION", "APPLIED", "WHAT IT DOES"}}
		for _, s := range states {
			m := shownState(s)
			shown = append(shown, m)
			applied := "no"
			if m.AppliedAt != nil {
				applied = command.DateTime(*m.AppliedAt)
			}
			rows = append(rows, []string{m.Name, applied, m.About})
		}
		return c.List(shown, rows...)
	})
}

// onMigrator adds the flags for the store to a command, and opens the database while do runs.
func onMigrator(c *command.Env, cmd *cobra.Command, do func(ctx context.Context, db app.Migrator) error) *cobra.Command {
	set := command.AddSettings(cmd, config.Option.IsStore)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		ctx, cancel := command.UntilSignal(cmd.Context())
		defer cancel()
		cfg, err := config.LoadStore(set.Sources(c.Environ))
		if err != nil {
			return err
		}
		db, err := app.OpenMigrator(ctx, cfg.Store)
		switch {
		case errors.Is(err, app.ErrNoMigrations):
			return command.Usage(err)
		case err != nil:
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return do(ctx, db)
	}
	return cmd
}

const upToDate = "nothing to do: the database is up to date"

func runMigrations(ctx context.Context, c *command.Env, db app.Migrator) error {
	report, err := db.Migrate(ctx)
	for _, lack := range report.Lacking {
		c.Note("note: %s", lack)
	}
	if err != nil {
		return err
	}
	applied, lines := []string{}, []string{}
	for _, m := range report.Applied {
		applied, lines = append(applied, m.String()), append(lines, "applied "+m.String())
	}
	return c.Answer(map[string]any{"applied": applied, "lacking": append([]string{}, report.Lacking...)}, cmp.Or(strings.Join(lines, "\n"), upToDate))
}

// showPlan writes the migrations that up would apply, with their database commands.
func showPlan(ctx context.Context, c *command.Env, db app.Migrator) error {
	states, err := db.Migrations(ctx)
	if err != nil {
		return err
	}
	plan, lines := []shownMigration{}, []string{}
	for _, s := range states {
		if !s.AppliedAt.IsZero() {
			continue
		}
		m := shownState(s)
		lines = append(lines, "# "+m.Name+": "+m.About)
		for _, command := range s.Commands {
			m.Commands = append(m.Commands, command.String())
			lines = append(lines, "db.runCommand("+command.String()+")")
		}
		plan = append(plan, m)
	}
	return c.Answer(plan, cmp.Or(strings.Join(lines, "\n"), upToDate))
}

func shownState(s migrations.State) shownMigration {
	m := shownMigration{Name: s.String(), About: s.About}
	if !s.AppliedAt.IsZero() {
		m.AppliedAt = &s.AppliedAt
	}
	return m
}
