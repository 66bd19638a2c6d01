package mongo

import (
	"context"
	"errors"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// TestDatabaseWithoutItsData: an instance keeps the known records when its database comes back
// empty, and follows the database again once it is restored.
func TestDatabaseWithoutItsData(t *testing.T) {
	_, s, _ := throughProxy(t)
	things := store.Table{Name: "things"}
	f, err := store.NewFollower(t.Context(), s)
	check.OK(t, err)
	append1 := func() {
		t.Helper()
		_, err = f.Append(t.Context(), func(int64) (store.Entry, []store.Write, error) {
			w := store.Write{Table: things, Record: store.Record{Key: "a", Value: []byte("{}")}}
			return store.Entry{Value: []byte("{}")}, []store.Write{w}, nil
		})
		check.OK(t, err)
	}
	append1()
	reloads := 0
	check.OK(t, f.Subscribe(t.Context(), store.Subscriber{
		Table: things, Reload: func(context.Context, store.Mark) error { reloads++; return nil }, Apply: func(context.Context, store.Batch) {},
	}))
	check.OK(t, s.db.Drop(t.Context()))
	for _, follow := range []func(context.Context) error{
		f.Refresh, func(ctx context.Context) error { return f.Renew(ctx, 0) },
	} {
		err := follow(t.Context())
		check.ErrorSays(t, err, "its data are lost, or it is another database")
		check.Equal(t, "the mark is lost", errors.Is(err, store.ErrMarkLost), false)
	}
	check.Equal(t, "reads of the table", reloads, 1)

	// It is restored to the state before it had any data.
	_, err = s.Migrate(t.Context())
	check.OK(t, err)
	check.OK(t, f.Refresh(t.Context()))
	check.Equal(t, "reads of the table", reloads, 2)
	append1()
}
