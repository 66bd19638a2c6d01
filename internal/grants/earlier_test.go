package grants_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/storetest"
	"oauth-server/internal/testworld"
)

// earlierWorld is a world whose store is that of an earlier release, which has issued everything in it
// at start. It derives successors as this one does its MACs.
func earlierWorld(t *testing.T, edits ...func(*grants.Options)) (*world, *failing) {
	t.Helper()
	packed, err := os.Open(filepath.Join("..", "store", "embedded", "testdata", "earlier.db.gz"))
	check.OK(t, err)
	defer func() { _ = packed.Close() }()
	z, err := gzip.NewReader(packed)
	check.OK(t, err)
	content, err := io.ReadAll(z)
	check.OK(t, err)
	file := filepath.Join(t.TempDir(), "earlier.db")
	check.OK(t, os.WriteFile(file, content, 0o600))

	w := newWorld(t, append([]func(*grants.Options){graceful}, edits...)...)
	w.store = testworld.OpenStore(t, file)
	testworld.AddUsers(t, w.store, start.Add(-time.Hour))
	f := &failing{Store: w.store}
	w.reopen(func(o *grants.Options) { o.Store = f })
	return w, f
}

var (
	earlierText      = storetest.EarlierText
	earlierSuccessor = storetest.EarlierSuccessor
)

// TestEarlierTokenBeginsAFamily at its first refresh, and is generation 0 of it.
func TestEarlierTokenBeginsAFamily(t *testing.T) {
	w, _ := earlierWorld(t)
	earlier := earlierText("unused")
	w.wantActive(true, earlier)
	first := w.refresh(earlier)
	check.Equal(t, "length", len(first.RefreshToken), 72)
	check.Equal(t, "first generation", withGeneration(t, first.RefreshToken, func(uint32) uint32 { return 1 }), first.RefreshToken)
	check.Equal(t, "scopes", first.Scopes, []string{"read", "write"})
	w.wantActive(false, earlier)
	w.wantActive(true, first.RefreshToken)
	w.clock.Advance(grace - time.Nanosecond)
	check.Equal(t, "successor again", w.refresh(earlier).RefreshToken, first.RefreshToken)
	second := w.refresh(first.RefreshToken)
	claims, err := w.ring.Verify(second.AccessToken, w.clock.Now())
	check.OK(t, err)
	check.Equal(t, "family", claims.Family, "family of unused")
	w.wantReplay(earlier)
	w.wantActive(false, second.RefreshToken)
	w.wantActive(false, second.AccessToken)
}

func TestEarlierTokenTooLate(t *testing.T) {
	w, _ := earlierWorld(t)
	first := w.refresh(earlierText("unused"))
	w.clock.Advance(grace)
	w.wantReplay(earlierText("unused"))
	w.wantActive(false, first.RefreshToken)
}

// TestEarlierTokens presents those that an earlier release has used, and their successors.
func TestEarlierTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		age   time.Duration
		edit  func(*grants.Options)
		says  string // in the refusal
		again string // what is issued, if it is of the earlier release
	}{
		"rotated, its successor unused":    {text: earlierText("rotated"), age: grace - 1, again: earlierSuccessor(earlierText("rotated"))},
		"rotated too long ago":             {text: earlierText("rotated"), age: grace, says: "used before"},
		"rotated, without a grace":         {text: earlierText("rotated"), edit: func(o *grants.Options) { o.RefreshGrace = 0 }, says: "used before"},
		"the successor":                    {text: earlierSuccessor(earlierText("rotated"))},
		"rotated, its successor used":      {text: earlierText("spent"), says: "used before"},
		"used, its successor unused":       {text: earlierSuccessor(earlierText("spent")), again: earlierSuccessor(earlierSuccessor(earlierText("spent")))},
		"rotated, for a random successor":  {text: earlierText("random"), says: "used before"},
		"a random successor":               {text: earlierText("random successor")},
		"bought with a code":               {text: earlierText("bought token"), age: 30*day - 1},
		"bought with a code, expired":      {text: earlierText("bought token"), age: 30 * day, says: "expired"},
		"a code":                           {text: earlierText("open code"), says: "not known"},
		"a redeemed code":                  {text: earlierText("bought"), says: "not known"},
		"a guess":                          {text: earlierText("guess"), says: "not known"},
		"beyond the maximum age":           {text: earlierText("unused"), age: day, edit: func(o *grants.Options) { o.RefreshMaxAge = day }, says: "expired"},
		"rotated, beyond the maximum age":  {text: earlierText("rotated"), edit: func(o *grants.Options) { o.RefreshMaxAge = time.Minute }, says: "used before"},
		"of a client that was added later": {text: earlierText("unused"), says: "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := earlierWorld(t)
			if tc.edit != nil {
				w.reopen(tc.edit)
			}
			if name == "of a client that was added later" {
				w.clients["shop"].CreatedAt = start.Add(time.Second)
			}
			w.clock.Advance(tc.age)
			operations := f.count()
			answer, err := w.token("shop", refreshing(tc.text))
			if tc.says != "" {
				wantCode(t, grants.InvalidGrant, err)
				check.ErrorSays(t, err, tc.says)
				return
			}
			check.OK(t, err)
			if tc.again != "" {
				check.Equal(t, "successor", answer.RefreshToken, tc.again)
				check.Equal(t, "written", operations["AdoptToken"]+operations["RotateFamily"], 0)
				return
			}
			check.Equal(t, "length", len(answer.RefreshToken), 72)
			check.Equal(t, "written", operations["AdoptToken"], 1)
		})
	}
}

// TestEarlierTokenOfAnotherClient, and its family.
func TestEarlierTokenOfAnotherClient(t *testing.T) {
	w, _ := earlierWorld(t)
	for range 2 {
		_, err := w.token("other", refreshing(earlierText("unused")))
		wantCode(t, grants.InvalidGrant, err)
		w.refresh(earlierText("unused"))
	}
}

func TestEarlierTokensAreRevoked(t *testing.T) {
	for _, text := range []string{earlierText("rotated"), earlierSuccessor(earlierText("rotated"))} {
		w, _ := earlierWorld(t)
		check.OK(t, w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: text}))
		w.wantActive(false, earlierSuccessor(earlierText("rotated")))
		_, err := w.token("shop", refreshing(earlierSuccessor(earlierText("rotated"))))
		wantCode(t, grants.InvalidGrant, err)
	}
}

// TestSixteenRefreshesOfAnEarlierToken: all get the first token of the family.
func TestSixteenRefreshesOfAnEarlierToken(t *testing.T) {
	w, _ := earlierWorld(t)
	var mu sync.Mutex
	issued := map[string]bool{}
	_, failures := atOnce(16, func() error {
		answer, err := w.token("shop", refreshing(earlierText("unused")))
		mu.Lock()
		defer mu.Unlock()
		issued[answer.RefreshToken] = true
		return err
	})
	check.Equal(t, "failures", len(failures), 0)
	check.Equal(t, "refresh tokens", len(issued), 1)
}

// TestEarlierTokenUsedMeanwhile, by this release or by an instance of the earlier one that is still there.
func TestEarlierTokenUsedMeanwhile(t *testing.T) {
	t.Run("by this release", func(t *testing.T) {
		w, f := earlierWorld(t)
		var meanwhile grants.TokenResponse
		f.looked = func() { f.looked = nil; meanwhile = w.refresh(earlierText("unused")) }
		check.Equal(t, "successor", w.refresh(earlierText("unused")).RefreshToken, meanwhile.RefreshToken)
	})
	for name, tc := range map[string]struct {
		successor string
		passes    bool
	}{
		"by an earlier one":                 {earlierSuccessor(earlierText("unused")), true},
		"by an earlier one without a grace": {earlierText("another"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := earlierWorld(t)
			f.earlierClaim = map[secret.Digest]grants.EarlierToken{}
			f.looked = func() {
				f.looked = nil
				token, err := w.store.EarlierToken(t.Context(), secret.DigestOf(earlierText("unused")))
				check.OK(t, err)
				next := token
				next.Digest, token.Claimed = secret.DigestOf(tc.successor), true
				f.earlierClaim[token.Digest], f.earlierClaim[next.Digest] = token, next
			}
			answer, err := w.token("shop", refreshing(earlierText("unused")))
			check.Equal(t, "passes", err == nil, tc.passes)
			if tc.passes {
				check.Equal(t, "successor", answer.RefreshToken, tc.successor)
			}
		})
	}
}

// TestEarlierStoreFailures: each failing operation is an error of the store, and burns nothing.
func TestEarlierStoreFailures(t *testing.T) {
	for text, operations := range map[string][]string{
		earlierText("unused"):  {"EarlierToken", "Revoked", "User", "AdoptToken"},
		earlierText("rotated"): {"EarlierToken", "Family", "Revoked", "User"},
	} {
		for _, operation := range operations {
			w, f := earlierWorld(t)
			f.operation, f.err = operation, errDown
			_, err := w.token("shop", refreshing(text))
			wantCode(t, grants.TemporarilyUnavailable, err)
			f.operation = ""
			w.refresh(text)
		}
	}
}
