package bolt

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// TestSweepOfTables sweeps tables with and without an index, in the file and in memory.
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

// TestIndexOfOwners: the index has only the current owner of each record.
func TestIndexOfOwners(t *testing.T) {
	s, table := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), store.Table{Name: "owned", ByOwner: true}
	for i, owner := range []string{"ada", "grace", "", "ada\x00x", "ada"} {
		for _, key := range []string{"moves", "goes"} {
			check.OK(t, s.PutAll(t.Context(), table, []store.Record{{Key: key, Owner: owner, Value: []byte("{}"), Version: int64(i + 1)}}))
		}
	}
	check.OK(t, s.Delete(t.Context(), table, nil, "goes"))
	var index []string
	check.OK(t, s.view(t.Context(), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(table.Name + ownersSuffix)).ForEach(func(k, _ []byte) error { index = append(index, string(k)); return nil })
	}))
	check.Equal(t, "index", index, []string{string(ownerKey("ada", "moves"))})
}
