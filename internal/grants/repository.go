package grants

import (
	"context"

	"oauth-server/internal/accounts"
	"oauth-server/internal/store"
)

// Tables holds a check for each table. It returns why a record of the table cannot be read, or nil.
var Tables = map[store.Table]func(*store.Record) error{
	grantTable: store.Readable(decodeGrant), agreementTable: store.Readable(decodeAgreement),
}

// Repository stores codes, families, agreements, and what accounts does. It is safe for concurrent
// use.
type Repository struct {
	*accounts.Repository
	grants     store.Collection[Grant]
	agreements store.Collection[Agreement]
}

// NewRepository returns the Repository in the store b.
func NewRepository(b store.Backend) *Repository {
	return &Repository{
		accounts.NewRepository(b),
		store.Collection[Grant]{Backend: b, Table: grantTable, Encode: encodeGrant, Decode: decodeGrant},
		store.Collection[Agreement]{Backend: b, Table: agreementTable, Encode: encodeAgreement, Decode: decodeAgreement},
	}
}

// deletedAtOnce is how many records [Repository.EndSignIns] deletes in one commit.
const deletedAtOnce = 1000

// EndSignIns deletes all codes, families, sessions, consents and known addresses. It is for a
// restored backup, because some of them may have ended since the backup was made. Revocations stay.
func (r *Repository) EndSignIns(ctx context.Context) error {
	b := r.grants.Backend
	for _, table := range append([]store.Table{grantTable, agreementTable}, accounts.SignInTables...) {
		var keys []string
		err := b.List(ctx, table, store.Query{}, func(rec store.Record) error {
			if keys = append(keys, rec.Key); len(keys) < deletedAtOnce {
				return nil
			}
			defer func() { keys = keys[:0] }()
			return b.DeleteAll(ctx, table, keys...)
		})
		if err == nil && len(keys) > 0 {
			err = b.DeleteAll(ctx, table, keys...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
