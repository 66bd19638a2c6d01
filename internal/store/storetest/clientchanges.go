package storetest

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
)

// follower has the clients of a store as a reader has them that follows the changes.
type follower struct {
	b       clientcfg.Store
	mark    clientcfg.Mark
	records map[string]clientcfg.Record
	seen    []string // IDs of the last read
}

func (f *follower) apply(r clientcfg.Record) {
	f.seen = append(f.seen, r.ID)
	if delete(f.records, r.ID); !r.Gone {
		f.records[r.ID] = r
	}
}

// read reads all.
func (f *follower) read(t *testing.T) {
	t.Helper()
	f.records, f.seen = map[string]clientcfg.Record{}, nil
	mark, err := f.b.Clients(t.Context(), f.apply)
	succeed(t, "clients", err)
	f.mark = mark
}

func (f *follower) follow(t *testing.T) {
	t.Helper()
	f.seen = nil
	mark, err := f.b.ClientChanges(t.Context(), f.mark, f.apply)
	succeed(t, "changes of clients", err)
	f.mark = mark
}

// clients returns those that can be read, ordered by ID.
func (f *follower) clients() (list []clientcfg.Client) {
	for _, id := range slices.Sorted(maps.Keys(f.records)) {
		if r := f.records[id]; r.Err == nil {
			list = append(list, r.Client)
		}
	}
	return list
}

// sameAs checks that following has come to what reading all comes to.
func (f *follower) sameAs(t *testing.T, what string) {
	t.Helper()
	all := &follower{b: f.b}
	all.read(t)
	equal(t, what, all.records, f.records)
}

// followChanges makes each kind of change. Of a change, the client and nothing else is read.
func followChanges(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c, updated := fullClient("c"), fullClient("c")
	updated.Name = "other"
	f := &follower{b: b}
	f.read(t)
	steps := []struct {
		name string
		do   func() error
		want []string
	}{
		{"nothing", func() error { return nil }, nil},
		{"create", func() error { return b.CreateClient(ctx, c) }, []string{"c"}},
		{"create another", func() error { return b.CreateClient(ctx, publicClient("p")) }, []string{"p"}},
		{"update", func() error { return b.UpdateClient(ctx, updated) }, []string{"c"}},
		{"update to the same", func() error { updated.Version = 2; return b.UpdateClient(ctx, updated) }, []string{"c"}},
		{"uses of secrets", func() error {
			return b.RecordUses(ctx, []clientcfg.SecretUse{{ClientID: "c", Digest: c.SecretDigest, At: Epoch}})
		}, nil},
		{"delete", func() error { return b.DeleteClient(ctx, "c") }, []string{"c"}},
		{"create again", func() error { return b.CreateClient(ctx, c) }, []string{"c"}},
		{"delete and create", func() error { return errors.Join(b.DeleteClient(ctx, "c"), b.CreateClient(ctx, c)) }, []string{"c"}},
		{"create and delete", func() error {
			return errors.Join(b.CreateClient(ctx, fullClient("x")), b.DeleteUnchanged(ctx, fullClient("x")))
		}, []string{"x"}},
	}
	for _, step := range steps {
		before, err := b.ClientsMark(ctx)
		succeed(t, "mark of clients", err)
		equal(t, "mark before "+step.name, f.mark, before)
		succeed(t, step.name, step.do())
		f.follow(t)
		slices.Sort(f.seen)
		equal(t, "read after "+step.name, step.want, slices.Compact(f.seen))
		if moved := f.mark != before; moved != (step.want != nil) {
			t.Errorf("after %s the mark goes from %+v to %+v", step.name, before, f.mark)
		}
		if step.want != nil {
			f.sameAs(t, "clients after "+step.name)
		}
		f.follow(t)
		equal(t, "read again after "+step.name, []string(nil), f.seen)
	}
}

// followMany follows from the beginning and from the middle while 40 workers change clients. In the end
// each has what is stored.
func followMany(t *testing.T, b Backend) {
	t.Helper()
	ctx, stopped := t.Context(), make(chan struct{})
	following := func() bool {
		select {
		case <-stopped:
			return false
		default:
			return true
		}
	}
	followers := make([]*follower, 4)
	var reading sync.WaitGroup
	for i := range followers {
		f := &follower{b: b}
		followers[i] = f
		f.read(t)
		reading.Go(func() {
			for following() {
				mark, err := b.ClientChanges(ctx, f.mark, f.apply)
				if err != nil {
					t.Errorf("changes of clients: %v", err)
					return
				}
				f.mark = mark
			}
		})
	}
	all(t, 40, func(i int) error {
		c := fullClient("client-" + strconv.Itoa(i))
		err := errors.Join(b.CreateClient(ctx, c), b.UpdateClient(ctx, c))
		if i%2 == 0 {
			err = errors.Join(err, b.DeleteClient(ctx, c.ID))
		}
		return err
	})
	close(stopped)
	reading.Wait()
	late := &follower{b: b, records: map[string]clientcfg.Record{}}
	for _, f := range append(followers, late) {
		f.follow(t)
		f.sameAs(t, "clients of a follower")
	}
	equal(t, "clients", 20, len(late.records))
}

// unknownMark: a store that was restored from a backup may be behind a mark.
func unknownMark(t *testing.T, b Backend) {
	t.Helper()
	succeed(t, "create", b.CreateClient(t.Context(), fullClient("c")))
	_, err := b.ClientChanges(t.Context(), clientcfg.Mark{Number: 1 << 40, Nonce: 1}, func(clientcfg.Record) {})
	failWith(t, "changes since a mark that is ahead", clientcfg.ErrMarkLost, err)
}

// sumOfTags: the sum is that of what is read, and moves with every change but that of uses.
func sumOfTags(t *testing.T, b Backend) {
	t.Helper()
	ctx, c := t.Context(), fullClient("c")
	seen := map[clientcfg.Sum]string{}
	for _, step := range []struct {
		name  string
		do    func() error
		again bool
	}{
		{"nothing", func() error { return nil }, false},
		{"create", func() error { return b.CreateClient(ctx, c) }, false},
		{"update", func() error { return b.UpdateClient(ctx, c) }, false},
		{"uses", func() error {
			return b.RecordUses(ctx, []clientcfg.SecretUse{{ClientID: "c", Digest: c.SecretDigest, At: c.SecretUsed.Add(time.Hour)}})
		}, true},
		{"create another", func() error { return b.CreateClient(ctx, publicClient("p")) }, false},
		{"delete", func() error { return b.DeleteClient(ctx, "c") }, false},
	} {
		succeed(t, step.name, step.do())
		sum, err := b.ClientsSum(ctx)
		if errors.Is(err, clientcfg.ErrNoSum) {
			return
		}
		succeed(t, "sum", err)
		f, want := &follower{b: b}, clientcfg.Sum{}
		f.read(t)
		for _, r := range f.records {
			want.Clients++
			want.Tags += r.Tag
		}
		equal(t, "sum after "+step.name, want, sum)
		if before, twice := seen[sum]; twice != step.again {
			t.Errorf("the sum after %s was seen before: %v, after %s", step.name, twice, before)
		}
		seen[sum] = step.name
	}
}
