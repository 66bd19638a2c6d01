package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

func testClients(t *testing.T, target Target) {
	t.Helper()
	t.Run("empty", func(t *testing.T) {
		equal(t, "clients", []clientcfg.Client(nil), clients(t, target.fresh(t)))
	})
	t.Run("create and read every field", func(t *testing.T) { createClients(t, target.fresh(t)) })
	t.Run("errors", func(t *testing.T) { clientErrors(t, target.fresh(t)) })
	t.Run("update replaces and counts", func(t *testing.T) { updateClient(t, target.fresh(t)) })
	t.Run("update finds no namesake", func(t *testing.T) { updateNamesake(t, target.fresh(t)) })
	t.Run("uses of secrets", func(t *testing.T) { recordUses(t, target.fresh(t)) })
	t.Run("every change can be followed", func(t *testing.T) { followChanges(t, target.fresh(t)) })
	t.Run("changes of many can be followed", func(t *testing.T) { followMany(t, target.fresh(t)) })
	t.Run("a mark that is not known", func(t *testing.T) { unknownMark(t, target.fresh(t)) })
	t.Run("the sum of the tags", func(t *testing.T) { sumOfTags(t, target.fresh(t)) })
	t.Run("no update is lost among 100 workers", func(t *testing.T) { lostUpdate(t, target.fresh(t)) })
	t.Run("one that cannot be read", func(t *testing.T) { unreadableClient(t, target) })
	t.Run("one of 100 creators wins", func(t *testing.T) { createRace(t, target.fresh(t)) })
}

func clients(t *testing.T, b Backend) []clientcfg.Client {
	t.Helper()
	f := &follower{b: b}
	f.read(t)
	return f.clients()
}

func createClients(t *testing.T, b Backend) {
	t.Helper()
	for _, c := range []clientcfg.Client{publicClient("b"), fullClient("c"), fullClient("a")} {
		c.Version = 77 // the store numbers versions itself
		succeed(t, "create", b.CreateClient(t.Context(), c))
	}
	equal(t, "clients", []clientcfg.Client{fullClient("a"), publicClient("b"), fullClient("c")}, clients(t, b))
	for _, want := range []clientcfg.Client{fullClient("a"), publicClient("b")} {
		got, err := b.Client(t.Context(), want.ID)
		succeed(t, "client", err)
		equal(t, "client", want, got)
	}
}

func clientErrors(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c := fullClient("c")
	succeed(t, "create", b.CreateClient(ctx, c))
	failWith(t, "create twice", clientcfg.ErrExists, b.CreateClient(ctx, c))
	failWith(t, "update unknown", clientcfg.ErrNotFound, b.UpdateClient(ctx, fullClient("unknown")))
	_, unknown := b.Client(ctx, "unknown")
	failWith(t, "read unknown", clientcfg.ErrNotFound, unknown)
	failWith(t, "delete unknown", clientcfg.ErrNotFound, b.DeleteClient(ctx, "unknown"))
	c.Version = 2
	failWith(t, "update from a version ahead", clientcfg.ErrConflict, b.UpdateClient(ctx, c))
	failWith(t, "delete from a version ahead", clientcfg.ErrConflict, b.DeleteUnchanged(ctx, c))
	failWith(t, "delete what is unknown", clientcfg.ErrNotFound, b.DeleteUnchanged(ctx, fullClient("unknown")))
	equal(t, "clients after the failures", []clientcfg.Client{fullClient("c")}, clients(t, b))
}

func updateClient(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c := fullClient("c")
	succeed(t, "create", b.CreateClient(ctx, c))
	old := c
	c.Name, c.Scopes, c.SecretDigest, c.Labels = "", []string{"other"}, secret.DigestOf("rotated"), ""
	succeed(t, "update", b.UpdateClient(ctx, c))
	failWith(t, "update from the old version", clientcfg.ErrConflict, b.UpdateClient(ctx, old))
	c.Version = 2
	equal(t, "clients", []clientcfg.Client{c}, clients(t, b))
	succeed(t, "delete", b.DeleteClient(ctx, "c"))
	equal(t, "clients after delete", []clientcfg.Client(nil), clients(t, b))
}

// updateNamesake updates a client that was deleted and created again since it was read. Both are at
// version 1; the stamps differ.
func updateNamesake(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	old, fresh, unstamped := fullClient("c"), fullClient("c"), fullClient("c")
	fresh.Stamp, fresh.SecretDigest, unstamped.Stamp = stamp("fresh"), secret.DigestOf("fresh"), secret.Stamp{}
	succeed(t, "create", b.CreateClient(ctx, fresh))
	failWith(t, "update from the namesake", clientcfg.ErrConflict, b.UpdateClient(ctx, old))
	failWith(t, "update from one without a stamp", clientcfg.ErrConflict, b.UpdateClient(ctx, unstamped))
	failWith(t, "delete the namesake", clientcfg.ErrConflict, b.DeleteUnchanged(ctx, old))
	equal(t, "clients", []clientcfg.Client{fresh}, clients(t, b))
	fresh.Stamp.Count++
	succeed(t, "count the stamp", b.UpdateClient(ctx, fresh))
	failWith(t, "delete from the old version", clientcfg.ErrConflict, b.DeleteUnchanged(ctx, fresh))
	fresh.Version = 2
	succeed(t, "delete", b.DeleteUnchanged(ctx, fresh))
}

func lostUpdate(t *testing.T, b Backend) {
	t.Helper()
	const workers = 100
	c := fullClient("c")
	c.Name = "0"
	succeed(t, "create", b.CreateClient(t.Context(), c))
	errs := make([]error, workers)
	together(workers, func(i int) { errs[i] = incrementName(t.Context(), b) })
	succeed(t, "update", errors.Join(errs...))
	got := clients(t, b)[0]
	if got.Name != strconv.Itoa(workers) || got.Version != workers+1 {
		t.Errorf("after %d increments: count %s at version %d", workers, got.Name, got.Version)
	}
}

// incrementName counts in the client's name, trying again on every conflict.
func incrementName(ctx context.Context, b Backend) error {
	for {
		c, err := b.Client(ctx, "c")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(c.Name)
		if err != nil {
			return fmt.Errorf("the name is no count: %w", err)
		}
		c.Name = strconv.Itoa(n + 1)
		if err = b.UpdateClient(ctx, c); !errors.Is(err, clientcfg.ErrConflict) {
			return err
		}
	}
}

func createRace(t *testing.T, b Backend) {
	t.Helper()
	const creators = 100
	errs := make([]error, creators)
	together(creators, func(i int) {
		c := fullClient("c")
		c.Name = strconv.Itoa(i)
		errs[i] = b.CreateClient(t.Context(), c)
	})
	winner := onlyWinner(t, errs, clientcfg.ErrExists)
	if got := clients(t, b)[0].Name; got != strconv.Itoa(winner) {
		t.Errorf("creator %d won, but the client is that of %s", winner, got)
	}
}

// onlyWinner checks that one error is nil and all others are the expected one.
func onlyWinner(t *testing.T, errs []error, loser error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("both %d and %d won", winner, i)
		case err == nil:
			winner = i
		default:
			failWith(t, "loser "+strconv.Itoa(i), loser, err)
		}
	}
	if winner < 0 {
		t.Fatal("no call won")
	}
	return winner
}
