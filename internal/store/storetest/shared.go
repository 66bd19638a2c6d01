package storetest

import (
	"strconv"
	"testing"

	"oauth-server/internal/keys"
)

func testShared(t *testing.T, target Target) {
	t.Helper()
	t.Run("put and read", func(t *testing.T) { putShared(t, target.fresh(t)) })
	t.Run("one of 100 instances wins", func(t *testing.T) { shareRace(t, target.fresh(t)) })
}

func shared(t *testing.T, b Backend, name string) []byte {
	t.Helper()
	value, err := b.Shared(t.Context(), name)
	succeed(t, "shared secret", err)
	return value
}

func putShared(t *testing.T, b Backend) {
	t.Helper()
	ctx, first, second := t.Context(), []byte{0, 1, 0xff}, []byte("second")
	equal(t, "secret of an empty store", []byte(nil), shared(t, b, "a"))
	failWith(t, "replace nothing", keys.ErrSharedChanged, b.PutShared(ctx, "a", first, second))
	succeed(t, "put", b.PutShared(ctx, "a", nil, first))
	failWith(t, "put again", keys.ErrSharedChanged, b.PutShared(ctx, "a", nil, second))
	failWith(t, "replace another", keys.ErrSharedChanged, b.PutShared(ctx, "a", second, second))
	equal(t, "secret", first, shared(t, b, "a"))
	equal(t, "another secret", []byte(nil), shared(t, b, "b"))
	succeed(t, "replace", b.PutShared(ctx, "a", first, second))
	equal(t, "replaced secret", second, shared(t, b, "a"))
	equal(t, "signing keys", []keys.Record(nil), listKeys(t, b))
}

func shareRace(t *testing.T, b Backend) {
	t.Helper()
	errs := make([]error, 100)
	together(len(errs), func(i int) { errs[i] = b.PutShared(t.Context(), "a", nil, []byte(strconv.Itoa(i))) })
	winner := onlyWinner(t, errs, keys.ErrSharedChanged)
	equal(t, "secret", strconv.Itoa(winner), string(shared(t, b, "a")))
}
