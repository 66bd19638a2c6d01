package bolt

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/store/storetest"
)

var target = storetest.Target{
	Location: func(t *testing.T) string {
		t.Helper()
		return filepath.Join(t.TempDir(), "oauth-server.db")
	},
	Open: func(_ context.Context, location string) (storetest.Backend, error) { return Open(location, Options{}) },
	Sweep: func(ctx context.Context, b storetest.Backend, now time.Time) error {
		_, err := b.(*Store).Sweep(ctx, now)
		return err
	},
	Many: 2 * partRecords,
	PutCounter: func(t *testing.T, b storetest.Backend, r exchange.Record) {
		t.Helper()
		putCounter(t, b.(*Store), r.ID, encodeCounter(&r, storetest.Epoch))
	},
	Age: func(t *testing.T, b storetest.Backend, table store.Table, key string, by time.Duration) {
		t.Helper()
		changeValue(t, b, table.Name, []byte(key), func(value []byte) []byte {
			r, err := decodeRecord(value)
			check.OK(t, err)
			return encodeRecord(&store.Record{
				Value: r.value, Owner: string(r.owner), Expires: fromMillis(r.expires), Version: r.version, Nonce: r.nonce,
				Changed: fromMillis(r.changed).Add(-by),
			})
		})
	},
	Spoil: map[string]func(t *testing.T, b storetest.Backend, table store.Table, key string){
		"edited by hand": spoil(func([]byte) []byte { return []byte(`{"n":1}`) }),
		"newer version":  spoil(func(value []byte) []byte { value[0] = recordFormat + 1; return value }),
		"truncated":      spoil(func(value []byte) []byte { return value[:9] }),
		"empty":          spoil(func([]byte) []byte { return nil }),
	},
	SpoilEntry: map[string]func(t *testing.T, b storetest.Backend, number int64){
		"edited by hand": spoilEntryAt(func([]byte) []byte { return []byte(`{"n":1}`) }),
		"newer version":  spoilEntryAt(func(value []byte) []byte { value[0] = recordFormat + 1; return value }),
		"truncated":      spoilEntryAt(func(value []byte) []byte { return value[:5] }),
		"empty":          spoilEntryAt(func([]byte) []byte { return nil }),
	},
}

func spoil(how func(value []byte) []byte) func(t *testing.T, b storetest.Backend, table store.Table, key string) {
	return func(t *testing.T, b storetest.Backend, table store.Table, key string) {
		t.Helper()
		changeValue(t, b, table.Name, []byte(key), how)
	}
}

func spoilEntryAt(how func(value []byte) []byte) func(t *testing.T, b storetest.Backend, number int64) {
	return func(t *testing.T, b storetest.Backend, number int64) {
		t.Helper()
		changeValue(t, b, trailBucket, binary.BigEndian.AppendUint64(nil, uint64(number)), how)
	}
}

// changeValue changes the value stored under a key.
func changeValue(t *testing.T, b storetest.Backend, bucket string, key []byte, how func(value []byte) []byte) {
	t.Helper()
	err := b.(*Store).writes.do(t.Context(), func(w *writeTx) error {
		w.touch()
		values := w.tx.Bucket([]byte(bucket))
		return values.Put(key, how(append([]byte(nil), values.Get(key)...)))
	})
	check.OK(t, err)
}

func TestBackend(t *testing.T) { storetest.Run(t, target) }
