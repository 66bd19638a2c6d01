package app

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

const (
	onceADay  = "[ { requests: 1, window: 24h } ]"
	lockedOut = `would lock out the admin client "ops"`
)

// operator registers a client for operators.
func (f *followed) operator(id string) {
	f.t.Helper()
	c := clientcfg.Client{ID: id}
	clientcfg.MakeOperator(&c)
	_, _, err := CreateClient(f.t.Context(), f.base.store, c, time.Now())
	check.OK(f.t, err)
	check.OK(f.t, f.base.clients.Renew(f.t.Context(), 0))
}

// trustOps changes a policy as an operator would, for that time or permanently.
func (f *followed) trustOps(lasts time.Duration) {
	f.t.Helper()
	change, err := clientcfg.SetTarget(clientcfg.PolicyTarget("ops"), &clientcfg.Value{Policy: ratelimit.Policy{Trusted: true}})
	check.OK(f.t, err)
	_, err = f.limiter.policies.Change(f.t.Context(), func(*clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
		e.Changes = []clientcfg.Change{change}
		if lasts > 0 {
			e.Changes, err = clientcfg.Temporarily(e.Changes, time.Now().Add(lasts))
		}
		return e, err
	})
	check.OK(f.t, err)
}

// TestConfigurationFileThatLocksOut checks that a file that locks out operators is refused by the
// same check as a change over the admin API.
func TestConfigurationFileThatLocksOut(t *testing.T) {
	const low = "rate_limit: { default: { client: " + onceADay + " } }\n"
	for name, tt := range map[string]struct{ before, after, refused string }{
		"by the limits of all": {tenPerMinute, low, lockedOut},
		"by its own":           {tenPerMinute, "rate_limit: { clients: { ops: { client: " + onceADay + " } } }\n", lockedOut},
		"that is trusted no more": {
			strings.Replace(low, "{ default", "{ clients: { ops: { trusted: true } }, default", 1), low, lockedOut,
		},
		"that is in dry-run no more": {
			strings.Replace(low, "{ default", "{ mode: dry_run, default", 1), low, lockedOut,
		},
		"in an outage": {
			tenPerMinute, "rate_limit: { default: { client: [ { requests: 100, on_outage: deny } ] } }\n", lockedOut,
		},
		"not, because users do not sign in with it": {tenPerMinute, "rate_limit: { default: { user: " + onceADay + " } }\n", ""},
		"not, because it is of another client":      {tenPerMinute, "rate_limit: { clients: { shop: { client: " + onceADay + " } } }\n", ""},
		"not more than before":                      {low, strings.Replace(low, "24h", "48h", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tt.before)
			f.operator("ops")
			f.operator("ops2") // the error is the same at each read
			check.OK(t, f.look(2))
			before := f.limiter.policies.Snapshot()
			f.write(tt.after)
			err := f.look(12)
			if tt.refused == "" {
				check.OK(t, err)
				check.Equal(t, "in use", f.limiter.policies.Snapshot() != before, true)
				return
			}
			check.ErrorSays(t, err, "rate_limit: the limit ")
			check.ErrorSays(t, err, tt.refused)
			check.Equal(t, "as before", f.limiter.policies.Snapshot() == before, true)
			f.shows("oauth_config_reload_failed 1")
			check.Equal(t, "lines in the log", strings.Count(f.log.String(), "configuration file rejected"), 1)
		})
	}
}

// A file that was refused because it locks out an operator is applied as soon as it does not, and
// only if it still does not when a temporary change ends.
func TestConfigurationFileThatLocksOutLater(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	f.operator("ops")
	f.trustOps(time.Hour)
	f.write("rate_limit: { default: { user: [ { requests: 20 } ], client: " + onceADay + " } }\n")
	err := f.look(2)
	check.ErrorSays(t, err, "rate_limit: after the temporary value ends at ")
	check.ErrorSays(t, err, ": the limit ")
	check.ErrorSays(t, err, lockedOut)
	check.Equal(t, "limit", f.limit(), int64(10))
	f.trustOps(0)
	check.OK(t, f.look(1))
	check.Equal(t, "limit", f.limit(), int64(20))
}

// The start is not refused, because an operator who can start the server can fix the file.
func TestStartWithLimitsThatLockOut(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), "rate_limit: { default: { client: "+onceADay+" } }\n")
	f.operator("ops")
	check.Equal(t, "warned of no client", strings.Contains(f.log.String(), "lock out"), false)
	l, err := newLimiter(t.Context(), f.base, f.opts)
	check.OK(t, err)
	check.Equal(t, "policies", l.policies.Snapshot().BaseDigest(), f.limiter.policies.Snapshot().BaseDigest())
	check.Equal(t, "lines in the log", strings.Count(f.log.String(), `level=WARN msg="started with limits that lock out an admin client"`), 1)
}

// TestOperatorsLockedOutLater checks that lockouts caused by other instances or by commands on the
// store are logged once.
func TestOperatorsLockedOutLater(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), "rate_limit: { instance_mode: dry_run }\n")
	logged := func(name string, want int) {
		t.Helper()
		for range 2 {
			check.OK(t, f.limiter.noteLockedOut(t.Context()))
		}
		check.Equal(t, name, strings.Count(f.log.String(), `level=WARN msg="limits lock out an admin client"`), want)
	}
	f.operator("ops")
	logged("no limit", 0)
	slow, err := clientcfg.SetTarget(clientcfg.PolicyTarget("ops"), &clientcfg.Value{
		Policy: ratelimit.Policy{Client: []ratelimit.Limit{ratelimit.NewLimit("daily", 1, 24*time.Hour)}},
	})
	check.OK(t, err)
	_, err = f.limiter.policies.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
		return clientcfg.Event{Changes: []clientcfg.Change{slow}}, nil
	})
	check.OK(t, err)
	logged("a limit", 1)
	f.operator("other")
	logged("another client, which is not limited", 1)
	f.trustOps(0)
	logged("trusted", 1)
	f.write("rate_limit: { default: { client: " + onceADay + " }, clients: { other: { client: " + onceADay + " } } }\n")
	check.ErrorSays(t, f.look(2), "would lock out")
	logged("a file that is refused", 1)
}
