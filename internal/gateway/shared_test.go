package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/limiter"
)

// instances are gateways that share their counts and their mappings to users.
type instances struct {
	t       *testing.T
	limit   int64
	store   *testworld.Store
	limiter *limiter.Limiter
	now     time.Time
	shared  []*sharing.Subjects
}

func newInstances(t *testing.T, limit int64) *instances {
	t.Helper()
	store := testworld.OpenStore(t, filepath.Join(t.TempDir(), "data.db"))
	return &instances{t: t, limit: limit, store: store, now: noon}
}

// start starts another instance, with an empty memory.
func (i *instances) start() *world {
	i.t.Helper()
	return newWorld(i.t, i.limit, func(o *gateway.Options) {
		if i.limiter == nil {
			i.limiter = o.Limiter
		}
		memory := subject.NewMemory(0)
		s := sharing.New(sharing.Options{Store: sharing.NewRepository(i.store), Memory: memory})
		i.shared = append(i.shared, s)
		o.Limiter, o.Subjects, o.Shared, o.Now = i.limiter, memory, s, func() time.Time { return i.now }
	})
}

// flush stores the queues.
func (i *instances) flush() {
	i.t.Helper()
	for _, s := range i.shared {
		check.OK(i.t, s.Flush(i.t.Context()))
	}
}

// reads returns the number of reads of the store.
func (i *instances) reads() (n uint64) {
	for _, s := range i.shared {
		st := s.Stats()
		n += st.Found + st.Unknown
	}
	return n
}

// TestAnotherInstanceKnowsTheUser checks that another instance knows the user of a refresh token at
// its first use, with one read. So it denies a request over the limit, and the token is not used
// up.
func TestAnotherInstanceKnowsTheUser(t *testing.T) {
	i := newInstances(t, 3)
	one, other := i.start(), i.start()
	one.upstream(issues("ada", "r1"))
	one.wantStatus("code", "grant_type=authorization_code&code=c", 200)
	i.flush()
	check.Equal(t, "reads for a code", i.reads(), 0)

	other.upstream(issues("ada", "r2"))
	other.wantStatus("refresh at the other", "grant_type=refresh_token&refresh_token=r1", 200)
	check.Equal(t, "reads", i.reads(), 1)
	i.flush()
	one.upstream(issues("ada", "r3"))
	one.wantStatus("refresh at the first", "grant_type=refresh_token&refresh_token=r2", 200)
	i.flush()
	other.wantStatus("over the limit", "grant_type=refresh_token&refresh_token=r3", 429)
	reads := i.reads()
	other.wantStatus("again", "grant_type=refresh_token&refresh_token=r3", 429)
	check.Equal(t, "reads of what is in memory", i.reads(), reads)
	i.start().wantStatus("after a restart", "grant_type=refresh_token&refresh_token=r3", 429)
	other.wantCame(1)
	check.Equal(t, "late", one.Stats().Late+other.Stats().Late, 0)
}

// TestEachRefreshAtAnotherInstance uses each token at another instance before it is stored, except
// the one that is over the limit.
func TestEachRefreshAtAnotherInstance(t *testing.T) {
	i := newInstances(t, 2)
	all := []*world{i.start(), i.start()}
	for n, want := range []int{200, 200, 200, 429, 429, 429} {
		all[n%2].upstream(issues("ada", fmt.Sprint("r", n+1)))
		all[n%2].wantStatus(fmt.Sprint("refresh ", n), fmt.Sprint("grant_type=refresh_token&refresh_token=r", min(n, 3)), want)
	}
	check.Equal(t, "late", all[0].Stats().Late+all[1].Stats().Late, 1)
}

// TestRotatedTokens checks that a used token leads to its user for an hour at other instances,
// because an answer may be lost, and a new token as long as it is valid.
func TestRotatedTokens(t *testing.T) {
	for name, c := range map[string]struct {
		after            time.Duration
		wantOld, wantNew int
	}{
		"within the hour": {time.Hour - time.Second, 429, 429},
		"after it":        {time.Hour, 200, 429},
		"after a month":   {subject.DefaultMaxLifetime, 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstances(t, 2)
			one := i.start()
			one.upstream(issues("ada", "r1"))
			one.wantStatus("code", "grant_type=authorization_code&code=c", 200)
			one.upstream(issues("ada", "r2"))
			one.wantStatus("refresh", "grant_type=refresh_token&refresh_token=r1", 200)
			i.flush()
			i.now = noon.Add(c.after) // the counts stay
			other := i.start()
			other.upstream(issues("ada", ""))
			other.wantStatus("the new one", "grant_type=refresh_token&refresh_token=r2", c.wantNew)
			other = i.start()
			other.upstream(issues("ada", ""))
			other.wantStatus("the old one", "grant_type=refresh_token&refresh_token=r1", c.wantOld)
		})
	}
}

// TestTokensOfBefore checks that the first answer shows the user of a new refresh token, which is
// known from then on at this instance and at others, even if the upstream does not rotate.
func TestTokensOfBefore(t *testing.T) {
	for name, c := range map[string]struct {
		answered string
		kept     time.Duration
	}{
		"not rotated":                 {"", subject.DefaultMaxLifetime},
		"the same again":              {"old", subject.DefaultMaxLifetime},
		"rotated, and accepted again": {"new", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstances(t, 1)
			one := i.start()
			one.upstream(issues("ada", c.answered))
			one.wantStatus("the first use", "grant_type=refresh_token&refresh_token=old", 200)
			one.wantStatus("the second use", "grant_type=refresh_token&refresh_token=old", 429)
			i.flush()
			i.now = noon.Add(c.kept - time.Second)
			i.start().wantStatus("at another", "grant_type=refresh_token&refresh_token=old", 429)
			check.Equal(t, "late", one.Stats().Late, 0)
			i.now = noon.Add(c.kept)
			other := i.start()
			other.upstream(fails)
			other.wantStatus("when it is not kept any longer", "grant_type=refresh_token&refresh_token=old", 401)
		})
	}
}

// TestShortLives checks that if the answer says that its refresh token expires within the hour, the
// used one keeps its stored expiry and is not stored again.
func TestShortLives(t *testing.T) {
	for lifetime, want := range map[int]uint64{1800: 2, 3600: 2, 3601: 3} {
		t.Run(fmt.Sprint(lifetime), func(t *testing.T) {
			i := newInstances(t, 3)
			w := i.start()
			answer := func(refresh string) http.HandlerFunc {
				return func(rw http.ResponseWriter, _ *http.Request) {
					_, _ = fmt.Fprintf(rw, `{"access_token":%q,"refresh_token":%q,"refresh_expires_in":%d}`, jwt("ada"), refresh, lifetime)
				}
			}
			w.upstream(answer("r1"))
			w.wantStatus("code", "grant_type=authorization_code&code=c", 200)
			w.upstream(answer("r2"))
			w.wantStatus("refresh", "grant_type=refresh_token&refresh_token=r1", 200)
			i.flush()
			check.Equal(t, "stored", i.shared[0].Stats().Stored, want)
			e, err := sharing.NewRepository(i.store).Subject(t.Context(), sharing.KeyOf(subject.DigestOf("r2"), "shop"))
			check.OK(t, err)
			check.Equal(t, "expires", e.Expires, noon.Add(time.Duration(lifetime)*time.Second))
		})
	}
}

// TestWhatAsksNothing checks that usernames are not stored, and that a Decider for other proxies does
// not follow tokens.
func TestWhatAsksNothing(t *testing.T) {
	i := newInstances(t, 1000)
	w := i.start()
	w.upstream(issues("0b5c", ""))
	w.wantStatus("password", "grant_type=password&username=ada&password=p", 200)
	h, err := gateway.NewDecider(gateway.Options{
		Limiter: i.limiter, Shared: i.shared[0], ClientAddr: func(*http.Request) (a netip.Addr, _ bool) { return a, false },
	})
	check.OK(t, err)
	asked := httptest.NewRequestWithContext(t.Context(), http.MethodPost, gateway.DecidePath,
		strings.NewReader("client_id=shop&grant_type=refresh_token&refresh_token=r1"))
	asked.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answered := httptest.NewRecorder()
	h.ServeHTTP(answered, asked)
	check.Equal(t, "status", answered.Code, 200)
	i.flush()
	check.Equal(t, "stats", i.shared[0].Stats(), sharing.Stats{})
}

// TestStoreAway checks that without the store, requests are decided as if nothing were shared.
func TestStoreAway(t *testing.T) {
	i := newInstances(t, 2)
	w := i.start()
	check.OK(t, i.store.Close())
	w.upstream(issues("ada", "r1"))
	w.wantStatus("a refresh token of before", "grant_type=refresh_token&refresh_token=r0", 200)
	w.wantStatus("refresh", "grant_type=refresh_token&refresh_token=r1", 200)
	w.wantStatus("over the limit", "grant_type=refresh_token&refresh_token=r1", 429)
	check.Equal(t, "failed", i.shared[0].Stats().Failed, 1)
}
