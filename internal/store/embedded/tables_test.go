package embedded

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// TestSweepOfTables: with an index and without, in the file and in memory.
func TestSweepOfTables(t *testing.T) {
	s, now := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), time.Now()
	for _, table := range []store.Table{{Name: "plain"}, {Name: "owned", ByOwner: true}, {Name: "volatile", Volatile: true}} {
		records := []store.Record{{Key: "stays", Owner: "ada", Value: []byte("{}")}}
		for i := range 1000 {
			expires := now.Add(time.Duration(i-900) * time.Second)
			records = append(records, store.Record{Key: fmt.Sprintf("%04d", i), Owner: "ada", Value: []byte("{}"), Expires: expires})
		}
		check.OK(t, s.PutAll(t.Context(), table, records))
		n, err := s.Sweep(t.Context(), now)
		check.OK(t, err)
		check.Equal(t, "removed", n, 900)
		var left []string
		check.OK(t, s.List(t.Context(), table, store.Query{Owner: "ada"}, func(r store.Record) error {
			left = append(left, r.Key)
			return nil
		}))
		check.Equal(t, "left", fmt.Sprintln(len(left), left[0], left[100]), "101 0900 stays\n")
	}
}
