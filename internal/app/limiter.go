package app

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/admin/resets"
	"oauth-server/internal/app/observed"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer"
)

// limiting is the second stage: the limits on tokens, and the record of decisions.
type limiting struct {
	base       *foundation
	counters   *counting.Counters
	syncer     *syncer.Syncer // shares the counts with other instances, and with the next start
	stats      *syncStats
	activity   *activity.Recorder
	denials    *denials
	resets     *resets.Resets
	policies   *clientcfg.PolicySource
	bans       *bans.Bans
	heartbeats *syncer.Heartbeats // nil: no other process can use the data file
	report     func() []byte      // for heartbeats; see share
	file       *configFile

	unregistered *misfits // clients with a policy in the configuration file
	lockedOut    *misfits // operators' clients
}

// newLimiter loads the policies: the configuration file with the changes by operators on top. It
// does not start the syncer, see share.
func newLimiter(ctx context.Context, f *foundation, opts Options) (l *limiting, err error) {
	l = &limiting{
		base: f, counters: counting.NewCounters(f.cfg.RateLimit.MaxKeys),
		activity: activity.New(activity.DefaultMaxClients, time.Now()),
		denials:  &denials{hash: f.userHash},
	}
	l.denials.follow(f.cfg)
	f.overload.activity = l.activity
	if f.cfg.Store.MongoDB != nil {
		l.heartbeats = syncer.NewHeartbeats(f.data)
	}
	l.syncer = l.newSyncer()
	l.stats = &syncStats{read: l.syncer.Stats}
	l.resets = resets.New(l.counters, eraser{f.backend, l.syncer}, f.log)
	l.policies, err = clientcfg.NewPolicySource(ctx, f.follower, clientcfg.PolicyOptions{
		Base: f.cfg.RateLimit.Settings, Reset: l.resets.CarryOut, Clock: f.clock.Now, Log: f.log,
	})
	if err != nil {
		return nil, err
	}
	if l.bans, err = newBans(ctx, l); err != nil {
		return nil, err
	}
	l.findMisfits()
	l.logOverrides(ctx)
	l.warnOfShortCodes(ctx, f.cfg)
	l.warnOfLockedOut(ctx, "started with limits that lock out an admin client")
	l.file = newConfigFile(l, opts)
	f.telemetry.watch(l)
	return l, nil
}

// eraser removes counts from the store when no running exchange can write them again.
type eraser struct {
	store  resets.Eraser
	syncer *syncer.Syncer
}

// EraseCounters implements [resets.Eraser].
func (e eraser) EraseCounters(ctx context.Context, clientID string, username *string) error {
	if err := e.syncer.Settle(ctx); err != nil {
		return err
	}
	return e.store.EraseCounters(ctx, clientID, username)
}

func (l *limiting) newSyncer() *syncer.Syncer {
	f, cfg := l.base, syncer.DefaultConfig()
	cfg.Interval = f.cfg.Sync.Interval.Std()
	cfg.Clock, cfg.Log, cfg.Observer = f.clock, f.log, f.telemetry
	cfg.Report = func() []byte { return l.report() }
	counters := observed.NewCounters(f.backend, f.telemetry)
	if l.heartbeats == nil {
		return syncer.New(l.counters, counters, nil, cfg)
	}
	return syncer.New(l.counters, counters, l.heartbeats, cfg)
}

// share starts the syncer, with the report for its heartbeats. The report is passed here and not to
// newLimiter because it contains the syncer's figures. stop writes the remaining counts after the
// last request was answered. It logs counts that it cannot write and returns no error, because the
// shutdown was requested.
func (l *limiting) share(ctx context.Context, report func() []byte) (stop func(context.Context) error) {
	l.report = report
	l.syncer.Start(ctx)
	return func(ctx context.Context) error {
		l.base.loops.Cancel() // the loops are done, and a missing store may delay some of them
		ctx, cancel := withShare(ctx, 3.0/4)
		defer cancel()
		left, err := l.syncer.Stop(ctx)
		l.base.telemetry.SyncLeftover(left.Requests)
		if err != nil {
			l.base.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "counts not written at shutdown; other instances lack them",
				slog.Int("keys", left.Keys), slog.Int64("requests", left.Requests), slog.Any("error", err))
		}
		return nil
	}
}

// warnOfShortCodes logs limits that can delay a client for longer than its authorization code is
// valid, because the code would be lost. It does nothing for a gateway, where the upstream issues
// the codes.
func (l *limiting) warnOfShortCodes(ctx context.Context, cfg *config.Config) {
	if l.base.isGateway() {
		return
	}
	settings, life := cfg.RateLimit.Settings, l.base.cfg.Tokens.CodeTTL.Std()
	policies := map[string]ratelimit.Policy{"": settings.Default}
	maps.Copy(policies, settings.Clients)
	for _, id := range slices.Sorted(maps.Keys(policies)) {
		policy := policies[id]
		for _, limit := range slices.Concat(policy.User, policy.Total, policy.Source) {
			ofCodes := limit.Grants == 0 || limit.Grants&ratelimit.GrantCode != 0
			if !policy.Trusted && ofCodes && limit.Window >= life {
				l.base.log.LogAttrs(ctx, slog.LevelWarn, "authorization codes can expire while a limit delays them; raise tokens.code_ttl",
					slog.String("client_id", cmp.Or(id, "(default)")), slog.String("limit", limit.Name),
					slog.String("window", limit.Window.String()), slog.String("code_ttl", life.String()))
			}
		}
	}
}

// logOverrides logs that parts of the configuration file do not apply, for someone who has just
// edited it.
func (l *limiting) logOverrides(ctx context.Context) {
	set := l.policies.Snapshot().Set()
	settings, clients := set.Settings.Names(), set.Clients.Len()
	if len(settings)+clients > 0 {
		l.base.log.LogAttrs(ctx, slog.LevelInfo, "limits set by operators override the configuration; see oauth-server limits list",
			slog.Any("settings", settings), slog.Int("clients", clients))
	}
}

// decided records a decision of the limiter. It implements grants.Options.Observe.
func (l *limiting) decided(ctx context.Context, d limiter.Decided) {
	l.base.telemetry.decided(ctx, d)
	l.denials.note(ctx, time.Now(), &d)
	if d.Decision.Counted() || d.Decision.Rejected() {
		l.base.overload.shedder.Used(d.ClientID, d.Decision.Usage())
	}
	kind := activity.User
	if d.Grant == string(clientcfg.ClientCredentials) {
		kind = activity.Client
	}
	l.activity.Record(time.Now(), activity.Observation{
		ClientID: d.ClientID, Username: d.Username, Kind: kind, Decision: &d.Decision,
		Tried: d.Tried.Outcome, TriedSince: d.Tried.Since,
	})
}

// issued records a token that was issued. It implements grants.Options.Issued.
func (l *limiting) issued(i grants.Issued) {
	l.base.telemetry.Issued(i.ClientID, string(i.Grant), i.Wasted)
	l.activity.RecordIssued(time.Now(), activity.Issuance{
		ClientID: i.ClientID, Wasted: i.Wasted, Refresh: i.Grant == clientcfg.RefreshToken,
	})
}

// statsAge is the greatest age of the figures of the syncer that are shown.
const statsAge = 100 * time.Millisecond

// syncStats caches the figures of the syncer for [statsAge]: gathering them looks at every counter
// that waits for an exchange, and /readyz is open to the public.
type syncStats struct {
	read func() syncer.Stats

	mu   sync.Mutex
	at   time.Time
	last syncer.Stats
}

func (s *syncStats) get() syncer.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= statsAge {
		s.last, s.at = s.read(), time.Now()
	}
	return s.last
}
