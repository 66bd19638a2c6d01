package mongo

import (
	"context"
	"fmt"

	"oauth-server/migrations"
)

// present returns an error if the database lacks migrations, without which no store is opened: its data
// were lost, or another database is in its place. It is asked where clients or policies are read as a
// whole, so that instances keep those they know, and do not take the database for one without any.
func (s *Store) present(ctx context.Context) error {
	return s.do(ctx, "read migrations", func(ctx context.Context) error {
		pending, err := migrations.Pending(ctx, s.db)
		if err == nil && len(pending) > 0 {
			err = fmt.Errorf("the database lacks %s: its data are lost, or it is another one", pending[0])
		}
		return err
	})
}
