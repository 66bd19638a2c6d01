package mongo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/syncer"
)

// throughProxy opens a migrated store behind a proxy, and the same store
// directly.
func throughProxy(t *testing.T) (proxied, direct *Store, p *mongotest.Proxy) {
	t.Helper()
	uri, database, _ := strings.Cut(target.Location(t), " ")
	p = mongotest.NewProxy(t, uri)
	return openAt(t, p.URI, database), openAt(t, uri, database), p
}

func openAt(t *testing.T, uri, database string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URI: uri, Database: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var hotID = ratelimit.CounterID{ClientID: "shop", Username: "alice"}

const aFrame = 1622211780

func aWrite(seq, n int64) syncer.Write {
	return syncer.Write{
		ID: hotID, NewEtag: 1 + rand.Int64N(1<<62), Seq: seq,
		Delta: []ratelimit.FrameCount{{Name: aFrame, Count: n}}, Expire: time.Now().Add(time.Hour),
	}
}

// again is the same write, sent once more because nobody knows what became of it.
func again(w syncer.Write) syncer.Write {
	w.Blind, w.Version, w.Etag, w.NewEtag = true, 0, 0, 1+rand.Int64N(1<<62)
	return w
}

func mustApply(t *testing.T, s *Store, instance string, w syncer.Write, want syncer.Status) {
	t.Helper()
	outcomes, err := s.Apply(t.Context(), instance, []syncer.Write{w})
	if err != nil || outcomes[0].Status != want {
		t.Fatalf("got %v, %v, want %s", outcomes, err, want)
	}
}

func document(t *testing.T, s *Store) syncer.Record {
	t.Helper()
	records, err := s.Load(t.Context(), []ratelimit.CounterID{hotID})
	if err != nil || len(records) != 1 {
		t.Fatalf("load: %v, %v", records, err)
	}
	return records[0]
}

func counted(r syncer.Record) (n int64) {
	for _, f := range r.Frames {
		n += f.Count
	}
	return n
}

// TestLostOnTheWay: whatever is lost, the caller is told that it is not known,
// and sending the same again makes it count once.
func TestLostOnTheWay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fault mongotest.Fault
		blind bool
		want  syncer.Status // of the second attempt
	}{
		{"request", mongotest.LoseRequest, false, syncer.Applied},
		{"reply", mongotest.LoseReply, false, syncer.Conflict},
		{"request of a blind write", mongotest.LoseRequest, true, syncer.Applied},
		{"reply to a blind write", mongotest.LoseReply, true, syncer.Conflict},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, direct, proxy := throughProxy(t)
			mustApply(t, direct, "other", aWrite(1, 1), syncer.Applied)
			base := document(t, direct)
			w := aWrite(7, 2)
			w.Version, w.Etag, w.Blind = base.Version, base.Etag, test.blind
			proxy.Once("update", test.fault)
			if outcomes, err := s.Apply(t.Context(), "me", []syncer.Write{w}); err == nil {
				t.Fatalf("the store guessed: %v", outcomes)
			}
			mustApply(t, s, "me", again(w), test.want)
			if r := document(t, s); counted(r) != 3 || r.Writers["me"] != 7 {
				t.Errorf("the document is %+v", r)
			}
		})
	}
}

// TestAppliedLate: an attempt that everybody has given up on reaches the server
// after all, before or after it was sent again.
func TestAppliedLate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		blind  bool
		before bool // the late one arrives before the second attempt
	}{
		{"conditional, after", false, false},
		{"conditional, before", false, true},
		{"blind, after", true, false},
		{"blind, before", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, direct, proxy := throughProxy(t)
			mustApply(t, direct, "other", aWrite(1, 1), syncer.Applied)
			base := document(t, direct)
			w := aWrite(7, 2)
			w.Version, w.Etag, w.Blind = base.Version, base.Etag, test.blind
			proxy.Once("update", mongotest.Delay)
			if outcomes, err := s.Apply(t.Context(), "me", []syncer.Write{w}); err == nil {
				t.Fatalf("the store guessed: %v", outcomes)
			}
			second := syncer.Applied
			if test.before {
				deliver(t, proxy, 1)
				second = syncer.Conflict
			}
			mustApply(t, s, "me", again(w), second)
			if !test.before {
				deliver(t, proxy, 1)
			}
			mustApply(t, s, "me", again(w), syncer.Conflict)
			if r := document(t, s); counted(r) != 3 {
				t.Errorf("the document is %+v", r)
			}
		})
	}
}

func deliver(t *testing.T, p *mongotest.Proxy, want int) {
	t.Helper()
	if n, err := p.Deliver(); err != nil || n != want {
		t.Fatalf("delivered %d, %v", n, err)
	}
}

// TestRecreated: the document expires while a write is held up, another
// instance begins a new one, and then the old write arrives.
func TestRecreated(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	mustApply(t, direct, "me", aWrite(1, 1), syncer.Applied)
	base := document(t, direct)
	w := aWrite(7, 2)
	w.Version, w.Etag = base.Version, base.Etag
	proxy.Once("update", mongotest.Delay)
	if _, err := s.Apply(t.Context(), "me", []syncer.Write{w}); err == nil {
		t.Fatal("a held up write was answered")
	}
	_, err := ttlStore{direct}.Sweep(t.Context(), time.Now().Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, direct, "other", aWrite(1, 4), syncer.Applied)
	deliver(t, proxy, 1)
	mustApply(t, s, "me", again(w), syncer.Applied)
	if r := document(t, s); counted(r) != 6 {
		t.Errorf("the document is %+v", r)
	}
}

// TestServerAway: while the server is away every call says so within the time
// it was given, and afterwards all goes on.
func TestServerAway(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	proxy.Break()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, apply := s.Apply(ctx, "me", []syncer.Write{aWrite(1, 1)})
	_, load := s.Load(ctx, []ratelimit.CounterID{hotID})
	_, now := s.Now(ctx)
	for name, err := range map[string]error{
		"apply": apply, "load": load, "now": now, "ping": s.Ping(ctx),
		"redeem": s.RedeemCode(ctx, secret.DigestOf("c"), nil),
	} {
		if err == nil || errors.Is(err, grants.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	proxy.Restore()
	mustApply(t, s, "me", again(aWrite(1, 1)), syncer.Applied)
	if r := document(t, s); counted(r) != 1 {
		t.Errorf("the document is %+v", r)
	}
}

// lossy breaks 8 % of the requests in each of three ways.
func lossy(seed uint64) func(command string) mongotest.Fault {
	r := rand.New(rand.NewPCG(seed, 2))
	return func(command string) mongotest.Fault {
		if command != "update" && command != "insert" && command != "find" {
			return mongotest.Pass
		}
		return [25]mongotest.Fault{
			mongotest.LoseRequest, mongotest.LoseRequest, mongotest.LoseReply, mongotest.LoseReply,
			mongotest.Delay, mongotest.Delay,
		}[r.IntN(25)]
	}
}

// TestExactThroughFaults: 12 instances count in 4 hot documents through a proxy
// that loses requests and replies and delivers some much later. Every count is
// there exactly once.
func TestExactThroughFaults(t *testing.T) {
	t.Parallel()
	const instances, keys, rounds, seed = 12, 4, 3, 1
	_, direct, proxy := throughProxy(t)
	stores := make([]*Store, instances) // a process each, with connections of its own
	for i := range stores {
		stores[i] = openAt(t, proxy.URI, direct.db.Name())
	}
	proxy.Decide(lossy(seed))
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			me := fmt.Sprintf("instance%d", i)
			for round := range int64(rounds) {
				for k := range keys {
					countThroughFaults(t, s, proxy, me, round+1, k)
				}
			}
		})
	}
	wg.Wait()
	if _, err := proxy.Deliver(); err != nil {
		t.Fatal(err)
	}
	for k := range keys {
		records, err := direct.Load(t.Context(), []ratelimit.CounterID{keyID(k)})
		if err != nil || len(records) != 1 || counted(records[0]) != instances*rounds || records[0].Version != instances*rounds {
			t.Errorf("want %d, have %+v, %v", instances*rounds, records, err)
		}
	}
}

func keyID(k int) ratelimit.CounterID {
	return ratelimit.CounterID{ClientID: "shop", Username: fmt.Sprintf("user %d", k)}
}

// countThroughFaults adds one: on the document as read, then, once anything is
// unknown or lost three times, blindly, until the document says that it is in.
func countThroughFaults(t *testing.T, s *Store, proxy *mongotest.Proxy, me string, seq int64, k int) {
	t.Helper()
	w, base := aWrite(seq, 1), readThroughFaults(t, s, keyID(k))
	for tries := 0; ; tries++ {
		w.ID, w.Version, w.Etag = keyID(k), base.Version, base.Etag
		if tries >= 3 {
			w = again(w)
		}
		outcomes, err := s.Apply(t.Context(), me, []syncer.Write{w})
		if err == nil && outcomes[0].Status == syncer.Applied {
			return
		}
		if err != nil {
			tries = 3
		}
		if tries%5 == 4 {
			_, _ = proxy.Deliver() // those given up on arrive in the middle of the others
		}
		if base = readThroughFaults(t, s, keyID(k)); base.Writers[me] >= seq {
			return
		}
		w.NewEtag = 1 + rand.Int64N(1<<62)
	}
}

func readThroughFaults(t *testing.T, s *Store, id ratelimit.CounterID) syncer.Record {
	t.Helper()
	for {
		records, err := s.Load(t.Context(), []ratelimit.CounterID{id})
		if err == nil && len(records) == 1 {
			return records[0]
		}
		if err == nil || t.Context().Err() != nil {
			return syncer.Record{ID: id}
		}
	}
}

// TestClaimsThroughFaults: claims whose requests and replies get lost. Whoever
// was told to have won has the only token there is.
func TestClaimsThroughFaults(t *testing.T) {
	t.Parallel()
	const codes, claimers = 12, 8
	_, direct, proxy := throughProxy(t)
	var told [codes][claimers]error
	for c := range codes {
		code := grants.Code{Digest: codeDigest(c), ExpiresAt: time.Now().Add(time.Hour)}
		if err := direct.CreateCode(t.Context(), code); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Decide(lossy(3))
	var wg sync.WaitGroup
	for i := range claimers {
		s := openAt(t, proxy.URI, direct.db.Name())
		for c := range codes {
			wg.Go(func() { told[c][i] = s.RedeemCode(t.Context(), codeDigest(c), prize(c, i)) })
		}
	}
	wg.Wait()
	proxy.Decide(nil)
	if _, err := proxy.Deliver(); err != nil {
		t.Fatal(err)
	}
	for c := range codes {
		checkClaims(t, direct, c, told[c][:])
	}
}

func checkClaims(t *testing.T, s *Store, c int, told []error) {
	t.Helper()
	last := s.RedeemCode(t.Context(), codeDigest(c), nil)
	found, won := 0, 0
	for i, err := range told {
		_, lost := s.RefreshToken(t.Context(), prize(c, i).Digest)
		if lost == nil {
			found++
		}
		if err == nil {
			won++
		}
		if err == nil && lost != nil || errors.Is(err, grants.ErrClaimed) && lost == nil {
			t.Errorf("code %d: claimer %d was told %v, but its token: %v", c, i, err, lost)
		}
	}
	if won > 1 || found > 1 || (found == 1) != errors.Is(last, grants.ErrClaimed) {
		t.Errorf("code %d: %d won, %d tokens, and a last claim says %v", c, won, found, last)
	}
}

func codeDigest(c int) secret.Digest { return secret.DigestOf(fmt.Sprintf("code %d", c)) }

func prize(c, i int) *grants.RefreshToken {
	return &grants.RefreshToken{
		Digest: secret.DigestOf(fmt.Sprintf("code %d, claimer %d", c, i)), ExpiresAt: time.Now().Add(time.Hour),
	}
}
