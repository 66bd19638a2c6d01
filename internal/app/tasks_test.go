package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
	datastore "oauth-server/internal/store"
)

// TestTasks checks the periodic tasks and their intervals. A change of clients or policies takes
// effect on every instance within the longest wait.
func TestTasks(t *testing.T) {
	cfg := testConfig(t)
	cfg.TLS = certificateFiles(t)
	writeCertificate(t, cfg.TLS, 1)
	s := idle(t, cfg, Options{})
	type times struct {
		Every, Retry time.Duration
		First        bool
	}
	got := map[string]times{}
	for _, task := range s.tasks() {
		got[task.Name] = times{task.Every, task.Retry, task.First}
		if task.Failed == "" {
			t.Errorf("%s: nothing is logged when it fails", task.Name)
		}
	}
	want := map[string]times{
		"signing keys":     {Every: time.Minute},
		"changes":          {Every: 1600 * time.Millisecond},
		"uses of secrets":  {Every: time.Minute},
		"bans":             {Every: 1600 * time.Millisecond},
		"ends of changes":  {Every: time.Second},
		"tokens for reuse": {Every: time.Second},
		"audit sweep":      {Every: time.Hour, Retry: time.Minute, First: true},
		"sweep":            {Every: time.Minute},

		"unregistered clients": {Every: 1600 * time.Millisecond, First: true},
		"operators locked out": {Every: 1600 * time.Millisecond},
		"certificate":          {Every: 10 * time.Second},
	}
	check.Equal(t, "tasks()", got, want)
}

// TestTasksOfAGateway checks that a gateway stores its mappings, unless it shares nothing.
func TestTasksOfAGateway(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*config.Gateway)
		want bool
	}{
		"shares by default": {func(*config.Gateway) {}, true},
		"switched off":      {func(g *config.Gateway) { g.ShareSubjects = false }, false},
		"judges for others": {func(g *config.Gateway) { g.Upstream, g.Judge = "", true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.Gateway.Upstream, cfg.Gateway.TokenPath = "http://127.0.0.1:1", []string{"/token"}
			c.edit(&cfg.Gateway)
			s := idle(t, cfg, Options{})
			found := false
			for _, task := range s.tasks() {
				if task.Name == "users of refresh tokens" {
					found = true
					check.Equal(t, "how often", []time.Duration{task.Every, task.Retry}, []time.Duration{250 * time.Millisecond, 5 * time.Second})
				}
			}
			check.Equal(t, "there is the task", found, c.want)
		})
	}
}

// changePolicy gives a client a policy at that time, as another process would.
func changePolicy(t *testing.T, s *Server, at time.Time, policy *clientcfg.Value) (version int64) {
	t.Helper()
	change, err := clientcfg.SetTarget(clientcfg.PolicyTarget("shop"), policy)
	check.OK(t, err)
	return appendChange(t, s.base.store, at, change)
}

// appendChange appends a change of policies without validation.
func appendChange(t *testing.T, b datastore.Backend, at time.Time, c clientcfg.Change) (version int64) {
	t.Helper()
	value, err := json.Marshal(clientcfg.Event{Action: "update", Target: c.Target, Changes: []clientcfg.Change{c}})
	check.OK(t, err)
	_, newest, err := b.Trail(t.Context(), datastore.Mark{}, 1)
	if !errors.Is(err, datastore.ErrMarkLost) {
		check.OK(t, err)
	}
	table := clientcfg.PoliciesTable
	mark, err := b.Append(t.Context(), datastore.Entry{Number: newest.Number + 1, At: at, Value: value},
		datastore.Write{Table: table, Record: datastore.Record{Key: "version", Value: []byte("{}")}},
		datastore.Write{Table: table, Record: datastore.Record{Key: c.Target, Value: c.After}, Delete: c.IsNull()})
	check.OK(t, err)
	return mark.Number
}

// pass lets simulated time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of synctest
	synctest.Wait()
}

// TestTasksFollowTheStore checks that changes by another process take effect within the longest
// wait of their task, also after failures, which are logged when they begin and when they end.
func TestTasksFollowTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		cfg := testConfig(t)
		s := idle(t, cfg, Options{Logger: newLogger(cfg.Log, &log)})
		s.startLoops()
		for range 20 {
			version := changePolicy(t, s, time.Now(), nil)
			pass(changesEvery)
			check.Equal(t, "version in force", s.limiter.policies.Snapshot().Version(), version)
		}
		store, invalid := s.base.store, clientcfg.Client{ID: "invalid"}
		check.OK(t, store.CreateClient(t.Context(), invalid, clientcfg.Event{}))
		// Invalid limits, as another process might store them.
		changePolicy(t, s, time.Now(), &clientcfg.Value{Policy: ratelimit.Policy{Mode: "loud"}})
		pass(3 * changesEvery)
		changePolicy(t, s, time.Now(), nil)
		check.OK(t, store.DeleteClient(t.Context(), invalid.ID, clientcfg.Event{}))
		if _, _, err := CreateClient(t.Context(), store, clientcfg.Client{ID: "shop"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		pass(changesEvery)
		if _, ok := s.base.clients.Client("shop"); !ok {
			t.Errorf("a new client is not known after %v", changesEvery)
		}
		for _, text := range []string{
			`ERROR msg="stored limits cannot be used; the last good ones stay in force"`, `INFO msg="all stored limits are usable again"`,
			`ERROR msg="client cannot be read and is not served"`, `INFO msg="unreadable client was deleted"`,
		} {
			check.Equal(t, text, strings.Count(log.String(), text), 1)
		}
	})
}

// TestTasksSweepTheAuditTrail checks that the trail is swept at once, and then about every hour.
func TestTasksSweepTheAuditTrail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idle(t, testConfig(t), Options{})
		kept := func(when string, want ...int64) {
			t.Helper()
			entries, err := s.base.store.Events(t.Context(), clientcfg.EventQuery{})
			check.OK(t, err)
			var got []int64
			for _, e := range entries {
				got = append(got, e.Number)
			}
			check.Equal(t, "entries "+when, got, want)
		}
		for _, age := range []time.Duration{time.Hour, -time.Minute, -90 * time.Minute, -3 * time.Hour} {
			changePolicy(t, s, time.Now().Add(-s.cfg.Audit.Keep.Std()-age), nil)
		}
		check.OK(t, s.base.store.Trim(t.Context(), 1)) // the first keys
		kept("before the start", 5, 4, 3, 2)
		s.startLoops()
		synctest.Wait()
		kept("after the start", 5, 4, 3)
		pass(time.Hour)
		kept("after an hour", 5, 4)
		pass(time.Hour)
		kept("after two hours", 5)
	})
}
