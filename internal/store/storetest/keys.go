package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"oauth-server/internal/keys"
)

func testKeys(t *testing.T, target Target) {
	t.Helper()
	t.Run("add, list, delete", func(t *testing.T) { addKeys(t, target.fresh(t)) })
	t.Run("replace", func(t *testing.T) { replaceKey(t, target.fresh(t)) })
	t.Run("one of 100 instances that replace a key wins", func(t *testing.T) { replaceRace(t, target.fresh(t)) })
	t.Run("one of 100 instances that rotate wins", func(t *testing.T) { rotateRace(t, target.fresh(t)) })
}

func listKeys(t *testing.T, b Backend) []keys.Record {
	t.Helper()
	list, err := b.Keys(t.Context())
	succeed(t, "keys", err)
	slices.SortFunc(list, func(a, b keys.Record) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func addKeys(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	equal(t, "keys of an empty store", []keys.Record(nil), listKeys(t, b))
	first, second, other := key(keys.ES256, 1), key(keys.ES256, 2), key(keys.RS256, 1)
	succeed(t, "add", errors.Join(b.AddKey(ctx, first), b.AddKey(ctx, second), b.AddKey(ctx, other)))
	again := first
	again.ID, again.PrivateKey = "of another", []byte{9}
	failWith(t, "add the same generation", keys.ErrExists, b.AddKey(ctx, again))
	equal(t, "keys", []keys.Record{first, second, other}, listKeys(t, b))
	succeed(t, "delete", b.DeleteKey(ctx, first.ID))
	succeed(t, "delete what is not there", b.DeleteKey(ctx, first.ID))
	equal(t, "keys after delete", []keys.Record{second, other}, listKeys(t, b))
	succeed(t, "add once more", b.AddKey(ctx, first))
}

// replaceKey: only the private key of the one named changes, and only from what it was.
func replaceKey(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	first, second := key(keys.ES256, 1), key(keys.ES256, 2)
	before, after := first.PrivateKey, []byte{0xff, 0, 7, 8, 9}
	failWith(t, "replace in an empty store", keys.ErrConflict, b.ReplaceKey(ctx, first.ID, before, after))
	succeed(t, "add", errors.Join(b.AddKey(ctx, first), b.AddKey(ctx, second)))
	failWith(t, "replace what it is not", keys.ErrConflict, b.ReplaceKey(ctx, first.ID, after, before))
	failWith(t, "replace its beginning", keys.ErrConflict, b.ReplaceKey(ctx, first.ID, before[:2], after))
	equal(t, "keys as before", []keys.Record{first, second}, listKeys(t, b))
	succeed(t, "replace", b.ReplaceKey(ctx, first.ID, before, after))
	first.PrivateKey = after
	equal(t, "keys", []keys.Record{first, second}, listKeys(t, b))
	succeed(t, "replace by the same", b.ReplaceKey(ctx, first.ID, after, after))
	succeed(t, "delete", b.DeleteKey(ctx, first.ID))
	failWith(t, "replace after delete", keys.ErrConflict, b.ReplaceKey(ctx, first.ID, after, before))
	equal(t, "a deleted key stays deleted", []keys.Record{second}, listKeys(t, b))
}

func replaceRace(t *testing.T, b Backend) {
	t.Helper()
	k := key(keys.ES256, 1)
	succeed(t, "add", b.AddKey(t.Context(), k))
	errs := make([]error, 100)
	together(len(errs), func(i int) {
		errs[i] = b.ReplaceKey(t.Context(), k.ID, k.PrivateKey, []byte{1, byte(i)})
	})
	k.PrivateKey = []byte{1, byte(onlyWinner(t, errs, keys.ErrConflict))}
	equal(t, "keys", []keys.Record{k}, listKeys(t, b))
}

func rotateRace(t *testing.T, b Backend) {
	t.Helper()
	errs := make([]error, 100)
	together(len(errs), func(i int) {
		k := key(keys.EdDSA, 7)
		k.ID = fmt.Sprintf("of %d", i)
		errs[i] = b.AddKey(t.Context(), k)
	})
	winner := onlyWinner(t, errs, keys.ErrExists)
	list := listKeys(t, b)
	if len(list) != 1 || list[0].ID != fmt.Sprintf("of %d", winner) {
		t.Errorf("instance %d won, but the keys are %v", winner, list)
	}
}
