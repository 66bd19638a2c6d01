package app

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/secret"
)

// denialLines requests three tokens where two are allowed, and returns the additions to the access
// log lines of these requests.
func denialLines(t *testing.T, change func(*config.RateLimit)) []string {
	t.Helper()
	var log bytes.Buffer
	r := start(t, limited(t, change), &log)
	client := newClient(t, nil)
	for range 3 {
		r.token(t, client)
	}
	client.CloseIdleConnections()
	check.OK(t, r.stop())
	var out []string
	for _, m := range regexp.MustCompile(`path=/token .* client_id=shop(.*) request_id=`).FindAllStringSubmatch(log.String(), -1) {
		out = append(out, strings.TrimSpace(m[1]))
	}
	return out
}

func TestDenialsAreLogged(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*config.RateLimit)
		last   string
	}{
		"denied":     {nil, "error=temporarily_unavailable outcome=denied limit=per-hour"},
		"would deny": {func(r *config.RateLimit) { r.Mode = ratelimit.DryRun }, "outcome=would_deny limit=per-hour"},
		"reused":     {func(r *config.RateLimit) { r.Default.OverLimit = ratelimit.OverLimitReuse }, "outcome=reused limit=per-hour"},
		"would reuse": {func(r *config.RateLimit) {
			r.Mode, r.Default.OverLimit = ratelimit.DryRun, ratelimit.OverLimitReuse
		}, "outcome=would_reuse limit=per-hour"},
		"off": {func(r *config.RateLimit) { r.Mode = ratelimit.Off }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := denialLines(t, tt.change)
			if want := []string{"", "", tt.last}; strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("logged %q, want %q", got, want)
			}
		})
	}
}

// decision returns the decision about the second request under a limit of one request an hour.
func decision(t *testing.T, mode ratelimit.Mode) ratelimit.Decision {
	t.Helper()
	limits, err := ratelimit.Enforced(ratelimit.NewLimit("per-hour", 1, time.Hour), ratelimit.NewLimit("per-hour", 1, time.Hour))
	check.OK(t, err)
	limits.Mode = mode
	c, k := counting.NewCounters(10), ratelimit.Key{ClientID: "shop", Username: "ada"}
	c.Take(time.Now(), k, limits, 1)
	return c.Take(time.Now(), k, limits, 1)
}

// noted returns the additions to the log line of a request with this decision.
func noted(t *testing.T, d *denials, now time.Time, x limiter.Decided) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/token", http.NoBody)
	check.OK(t, err)
	req = accesslog.Identify(req, http.Header{}, false)
	d.note(req.Context(), now, &x)
	var log bytes.Buffer
	(&accesslog.Line{Route: "/token", Started: now}).Write(newLogger(config.Log{}, &log), req)
	_, out, _ := strings.Cut(strings.TrimSpace(log.String()), `remote="invalid IP"`)
	return strings.TrimSpace(out)
}

func TestDenialsNameTheUser(t *testing.T) {
	hash := func(name string) string { return "hash-of-" + name }
	denied, would, allowed := decision(t, ratelimit.Enforce), decision(t, ratelimit.DryRun), ratelimit.Decision{Outcome: ratelimit.Allowed}
	for name, tt := range map[string]struct {
		names bool
		x     limiter.Decided
		want  string // with log_users: denied
	}{
		"hashed":     {false, limiter.Decided{Username: "ada", Decision: denied}, "outcome=denied limit=per-hour user_hash=hash-of-ada"},
		"in clear":   {true, limiter.Decided{Username: "ada", Decision: denied}, "outcome=denied limit=per-hour username=ada"},
		"no user":    {false, limiter.Decided{Decision: denied}, "outcome=denied limit=per-hour"},
		"would deny": {false, limiter.Decided{Username: "ada", Decision: would}, "outcome=would_deny limit=per-hour user_hash=hash-of-ada"},
		"candidate": {
			false,
			limiter.Decided{Username: "ada", Decision: allowed, Tried: limiter.Tried{Outcome: ratelimit.WouldDeny, Limit: "tried"}},
			"outcome=candidate_would_deny limit=tried user_hash=hash-of-ada",
		},
		"candidate reuses": {
			false,
			limiter.Decided{Decision: allowed, Tried: limiter.Tried{Outcome: ratelimit.WouldReuse, Limit: "tried"}},
			"outcome=candidate_would_reuse limit=tried",
		},
		"candidate bans": {false, limiter.Decided{Decision: allowed, Tried: limiter.Tried{Outcome: ratelimit.WouldBan}}, "outcome=candidate_would_ban"},
		"denied by both": {false, limiter.Decided{Decision: denied, Tried: limiter.Tried{Outcome: ratelimit.WouldDeny, Limit: "tried"}}, "outcome=denied limit=per-hour"},
		"allowed":        {false, limiter.Decided{Username: "ada", Decision: allowed}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &denials{hash: hash}
			d.names.Store(tt.names)
			check.Equal(t, "noted", noted(t, d, time.Now(), tt.x), tt.want)
			d.all.Store(true)
			if tt.want == "" {
				tt.want = "user_hash=hash-of-ada"
			}
			check.Equal(t, "noted with all users", noted(t, d, time.Now(), tt.x), tt.want)
		})
	}
}

// A sample of would-be denials is logged, with the number of skipped ones. All denials are logged.
func TestWouldBeDenialsAreSampled(t *testing.T) {
	d, now := &denials{hash: strings.ToUpper}, time.Unix(1_000_000, 0)
	count := func(mode ratelimit.Mode) (lines int) {
		x := limiter.Decided{Username: "ada", Decision: decision(t, mode)}
		for range 25 {
			if noted(t, d, now, x) != "" {
				lines++
			}
		}
		return lines
	}
	check.Equal(t, "would-be denials logged", count(ratelimit.DryRun), wouldBeLines)
	check.Equal(t, "denials logged", count(ratelimit.Enforce), 25)
	d.all.Store(true)
	check.Equal(t, "one that is left out", noted(t, d, now, limiter.Decided{Username: "ada", Decision: decision(t, ratelimit.DryRun)}), "user_hash=ADA")
	next := noted(t, d, now.Add(time.Second), limiter.Decided{Decision: decision(t, ratelimit.DryRun)})
	if want := "outcome=would_deny limit=per-hour skipped=16"; next != want {
		t.Errorf("the next second logs %q, want %q", next, want)
	}
}

// Decisions appear in the log line and in the data for operators, with the user's hash or name.
func TestDenialsOfUsersGoToTheLogAndToOperators(t *testing.T) {
	for _, names := range []bool{false, true} {
		cfg := testConfig(t)
		cfg.LogUsernames = names
		r := start(t, cfg, &bytes.Buffer{})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/token", http.NoBody)
		check.OK(t, err)
		req = accesslog.Identify(req, http.Header{}, false)
		r.limiter.decided(req.Context(), limiter.Decided{ClientID: "shop", Username: "ada", Grant: "password", Decision: decision(t, ratelimit.Enforce)})
		var log bytes.Buffer
		(&accesslog.Line{Route: "/token", Started: time.Now()}).Write(newLogger(config.Log{}, &log), req)
		want := " user_hash=" + r.base.userHash("ada") + "\n"
		if names {
			want = " username=ada\n"
		}
		if !strings.HasSuffix(log.String(), want) {
			t.Errorf("the line %q does not end with %q", log.String(), want)
		}
		report := r.limiter.activity.Report(time.Now(), 10)
		if users, _ := report.DeniedOf("shop"); len(users) != 1 || users[0].Username != "ada" || users[0].Denied != 1 {
			t.Errorf("operators see %+v", users)
		}
	}
}

// The log line of a withdrawal on /consents names the user of the consent.
func TestWithdrawalNamesTheUser(t *testing.T) {
	var log bytes.Buffer
	r := start(t, testConfig(t), &log)
	service, err := newService(r.base, r.limiter)
	check.OK(t, err)
	for _, names := range []bool{false, true} {
		r.limiter.denials.names.Store(names)
		now := time.Now()
		check.OK(t, r.base.store.PutAgreement(t.Context(), grants.Agreement{
			ID: secret.ID(), Username: "ada", ClientID: "shop", AgreedAt: now, UsedAt: now, ExpiresAt: now.Add(time.Hour),
		}))
		check.OK(t, service.Withdraw(t.Context(), "ada", "shop"))
	}
	check.OK(t, r.stop())
	for _, user := range []string{"user_hash=" + r.base.userHash("ada"), "username=ada"} {
		if want := `msg="consent withdrawn; tokens revoked" client_id=shop ` + user + "\n"; !strings.Contains(log.String(), want) {
			t.Errorf("logged without %q:\n%s", want, log.String())
		}
	}
}

// The hash of a user is the same after a restart, and differs from the name and from other users'
// hashes.
func TestUserHashStays(t *testing.T) {
	cfg := testConfig(t)
	r := start(t, cfg, &bytes.Buffer{})
	first, other := r.base.userHash("ada"), r.base.userHash("bob")
	check.OK(t, r.stop())
	again := resume(t, cfg, r.secret).base.userHash("ada")
	if first != again || first == other || len(first) != hashLength || strings.Contains(first, "ada") {
		t.Errorf("hashes of ada %q and %q, of bob %q", first, again, other)
	}
}
