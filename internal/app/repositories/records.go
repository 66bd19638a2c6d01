package repositories

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/store"
)

// Tables contains, for each table, a function that returns why a record is unreadable, or nil. It
// leaves out the audit trail and short-lived records.
var Tables = func() map[store.Table]func(*store.Record) error {
	all := map[store.Table]func(*store.Record) error{
		bans.Table: bans.CheckRecord, clientcfg.ClientsTable: clientcfg.CheckRecord, clientcfg.UsesTable: clientcfg.CheckUse,
		clientcfg.PoliciesTable: clientcfg.CheckPolicy, sharing.Table: sharing.CheckRecord,
		keys.KeysTable: keys.CheckKey, keys.SecretsTable: keys.CheckSecret,
	}
	maps.Copy(all, accounts.Tables)
	maps.Copy(all, grants.Tables)
	return all
}()

// UnreadableRecord is a stored record that this version cannot read.
type UnreadableRecord struct {
	Table store.Table
	Key   string
	Err   error
}

// Name returns the table and the key.
func (r *UnreadableRecord) Name() string { return r.Table.Name + "/" + r.Key }

// UnreadableRecords returns the unreadable records, sorted by table and key.
func UnreadableRecords(ctx context.Context, s Store) (found []UnreadableRecord, err error) {
	for _, t := range slices.SortedFunc(maps.Keys(Tables), func(a, b store.Table) int { return strings.Compare(a.Name, b.Name) }) {
		err := s.List(ctx, t, store.Query{}, func(r store.Record) error {
			if err := Tables[t](&r); err != nil {
				found = append(found, UnreadableRecord{t, r.Key, err})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the table %s: %w", t.Name, err)
		}
	}
	return found, nil
}

// Deletable returns an error for clients and users. It names the command to use, because deleting
// them also deletes related records.
func (r *UnreadableRecord) Deletable() error {
	switch r.Table {
	case clientcfg.ClientsTable:
		return fmt.Errorf("%s: delete it with: oauth-server client delete '%s'", r.Name(), r.Key)
	case accounts.UsersTable:
		return fmt.Errorf("%s: delete it with: oauth-server user delete '%s'", r.Name(), r.Key)
	}
	return nil
}

// Delete removes the record, which must be deletable.
func (r *UnreadableRecord) Delete(ctx context.Context, s Store) error {
	switch r.Table {
	case clientcfg.PoliciesTable:
		return clientcfg.DropPolicy(ctx, s.Follower, r.Key)
	case keys.KeysTable:
		return s.DropKey(ctx, r.Key)
	}
	return s.Delete(ctx, r.Table, nil, r.Key)
}
