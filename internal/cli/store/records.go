package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/registry"
	"oauth-server/internal/app"
	"oauth-server/internal/app/repositories"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

// NewRecords makes the commands on unreadable records.
func NewRecords(c *command.Env) *cobra.Command {
	var remove, yes bool
	var reason string
	cmd := &cobra.Command{
		Use: "records [TABLE[/KEY]...]", Short: "Show or delete unreadable records in the store",
		Long: `Show stored records that this version cannot read, because they are damaged, were edited by hand or
come from a newer version: all of them, or those in the named tables or with the named keys.

With --delete, delete the named ones. docs/data.md says what this means for each table. If a newer
version wrote the records, upgrade instead. Stop a server that uses the data file first.`,
		Example: `  oauth-server records --mongodb-uri mongodb://localhost
  oauth-server records --delete 'agreements/ada shop'`,
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the named records")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before --delete")
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the change, kept in the audit trail")
	set := command.AddSettings(cmd, config.Option.IsStore)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if remove && len(names) == 0 {
			return command.Usagef("--delete needs the name of a table or record")
		}
		cfg, err := config.LoadStore(set.Sources(c.Environ))
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		return command.WithExisting(ctx, cfg, func(store app.Store) error {
			found, err := repositories.UnreadableRecords(ctx, store)
			if err == nil {
				found, err = named(found, names)
			}
			if err == nil {
				err = showRecords(c, found)
			}
			if err != nil || !remove || len(found) == 0 {
				return err
			}
			if !yes {
				if err := c.Confirm(); err != nil {
					return err
				}
			}
			r := registry.New(registry.Options{Store: store, Events: store, Reason: reason, By: clientcfg.Actor{Store: connect.Whoami()}})
			return deleteRecords(ctx, c, store, r, found)
		})
	}
	return cmd
}

// named returns the records with these names; all records if names is empty.
func named(found []repositories.UnreadableRecord, names []string) (some []repositories.UnreadableRecord, err error) {
	if len(names) == 0 {
		return found, nil
	}
	for _, name := range names {
		before := len(some)
		for _, r := range found {
			if r.Table.Name == name || r.Name() == name {
				some = append(some, r)
			}
		}
		if len(some) == before {
			err = errors.Join(err, fmt.Errorf("%s: there is no unreadable record of this name or in a table of this name", name))
		}
	}
	return some, err
}

// showRecords lists records with the reason why they are unreadable.
func showRecords(c *command.Env, found []repositories.UnreadableRecord) error {
	type shown struct {
		Record string `json:"record"`
		Error  string `json:"error"`
	}
	list, rows := []shown{}, [][]string{{"RECORD", "WHY IT CANNOT BE READ"}}
	for i := range found {
		s := shown{found[i].Name(), found[i].Err.Error()}
		if _, why, ok := strings.Cut(s.Error, "cannot be read: "); ok {
			s.Error = why
		}
		list, rows = append(list, s), append(rows, []string{s.Record, s.Error})
	}
	return c.List(list, rows...)
}

func deleteRecords(ctx context.Context, c *command.Env, store app.Store, r *registry.Service, found []repositories.UnreadableRecord) (err error) {
	for i := range found {
		failed := found[i].Deletable()
		if failed == nil {
			failed = r.Record(ctx, "delete", "records/"+found[i].Name(), nil, nil, func() error { return found[i].Delete(ctx, store) })
		}
		if failed == nil {
			c.Note("deleted %s", found[i].Name())
		}
		err = errors.Join(err, failed)
	}
	return err
}
