package bolt

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

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
