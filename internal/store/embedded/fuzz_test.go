package embedded

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// survives checks that a record which is read from value is written so that it reads back the same,
// and that a record which cannot be read is reported as damage.
func survives[T any](t *testing.T, value []byte, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	t.Helper()
	got, err := decode(value)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("untyped error %v", err)
		}
		return
	}
	if encode == nil {
		return
	}
	written, err := encode(got)
	if err != nil {
		return
	}
	again, err := decode(written)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("it does not survive: %v\n%s", err, cmp.Diff(got, again))
	}
}

// FuzzDecode: every kind of record.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{recordVersion})
	f.Add(encodeCounter(&counter{writers: map[string]int64{"a": 1}, frames: map[int64]int64{1: 2}}))
	f.Add(encodeCounter(&counter{version: 2, etag: 3, frame: 60_000, pruned: 4, writers: map[string]int64{"a": 1}}))
	f.Fuzz(func(t *testing.T, value []byte) {
		survives(t, value, decodeCounter, func(c *counter) ([]byte, error) { return encodeCounter(c), nil })
	})
}
