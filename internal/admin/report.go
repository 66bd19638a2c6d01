package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/activity"
)

// topReported is the maximum number of counters in a report.
const topReported = 20

// reportsLast is how long an instance is shown after its last heartbeat. Heartbeats are 4 s apart.
const reportsLast = 15 * time.Second

// Report returns the encoded report of this process for its next heartbeat, which lets the admin
// API of other instances show this instance. It returns nil if encoding fails, and logs the first
// failure. It is safe for concurrent use.
func (s *Server) Report() []byte {
	r := s.report(s.o.Now())
	r.Instance.Self = false
	body, err := json.Marshal(r)
	if failed := err != nil; s.unreported.Swap(failed) != failed && failed {
		s.log.LogAttrs(context.Background(), slog.LevelError, "encode instance report failed; other instances do not show this one",
			slog.Any("error", err))
	}
	return body
}

// report returns the report of this process at now.
func (s *Server) report(now time.Time) adminapi.Report {
	return adminapi.Report{
		Instance: s.self(now),
		Activity: s.o.Activity.Report(now, activity.MaxReported),
		Top:      s.nearLimit(),
	}
}

// Finding the keys nearest their limits reads every key. If that takes longer than quickLook, the
// result is reused, which limits the time spent on it to one part in lookShare.
const (
	quickLook = 10 * time.Millisecond
	lookShare = 100
)

// lastLook is the last result, and when to look again.
type lastLook struct {
	mu    sync.Mutex
	found []adminapi.Counter
	due   time.Time // by the machine's clock
}

func (s *Server) nearLimit() []adminapi.Counter {
	l := &s.look
	l.mu.Lock()
	defer l.mu.Unlock()
	began := time.Now()
	if began.Before(l.due) {
		return l.found
	}
	now := s.o.Clock()
	l.found, l.due = s.showUsages(s.o.Counters.Top(now, topReported), now), time.Time{}
	if took := time.Since(began); took > quickLook {
		l.due = began.Add(lookShare * took)
	}
	return l.found
}

func (s *Server) self(now time.Time) adminapi.Instance {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	st := s.o.Policies.Status()
	d := adminapi.Instance{
		ID: s.o.Instance(), Host: host, Version: s.o.Version, StartedAt: s.begun.UTC(), SeenAt: now.UTC(), Self: true,
		Policies: adminapi.PoliciesInForce{Version: st.Version, LeftOut: st.LeftOut, CheckedAt: st.CheckedAt.UTC(), File: s.o.Policies.Snapshot().BaseDigest()},
	}
	if s.o.File != nil {
		d.File = s.o.File()
	}
	if st.Err != nil {
		d.Policies.Error = st.Err.Error()
	}
	if s.o.Sync != nil {
		sync := s.o.Sync()
		d.Sync = &sync
	}
	return d
}

// SweepAudit removes audit entries older than Options.AuditKept. Call it periodically.
func (s *Server) SweepAudit(ctx context.Context) error {
	now := s.o.Now()
	return s.o.Events.SweepEvents(ctx, now.Add(-s.o.AuditKept), now)
}

// reports returns the reports of all instances, starting with the current one of this instance. The
// other reports are as old as the last heartbeats.
func (s *Server) reports(ctx context.Context) []adminapi.Report {
	out := []adminapi.Report{s.report(s.o.Now())}
	if s.o.Reports == nil {
		return out
	}
	stored, err := s.o.Reports.Reports(ctx, reportsLast)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "read of instance reports failed; showing only this instance", slog.Any("error", err))
		out[0].Activity.Incomplete = true
		return out
	}
	for _, i := range stored {
		if i.ID == s.o.Instance() {
			continue
		}
		var body adminapi.Report
		if len(i.Report) == 0 { // it has just started
			out[0].Activity.Incomplete = true
			continue
		}
		if err := json.Unmarshal(i.Report, &body); err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "decode instance report failed; leaving it out",
				slog.String("instance", i.ID), slog.Any("error", err))
			out[0].Activity.Incomplete = true
			continue
		}
		body.Instance.ID, body.Instance.Self = i.ID, false
		out = append(out, body)
	}
	return out
}

// activity adds up the decisions of all instances.
func (s *Server) activity(ctx context.Context) activity.Report { return merged(s.reports(ctx)) }

func merged(all []adminapi.Report) activity.Report {
	parts := make([]activity.Report, len(all))
	for i := range all {
		parts[i] = all[i].Activity
	}
	return activity.Merge(parts...)
}

// policies returns the policies as they are in the store, so an operator's change is based on
// current values. If the store cannot be read, it returns the last known ones, and the response
// shows their age.
func (s *Server) policies(c *call) *clientcfg.PolicySnapshot {
	s.renew(c)
	return s.o.Policies.Snapshot()
}

// clients is like policies, for the registered clients.
func (s *Server) clients(c *call) *clientcfg.Directory {
	s.renew(c)
	return s.o.Clients.Directory()
}

// renewWithin is how long a request waits for the newest snapshots.
const renewWithin = 2 * time.Second

// renew makes the snapshots at least as new as the store was when the request arrived.
func (s *Server) renew(c *call) {
	ctx, cancel := context.WithTimeout(c.Request().Context(), renewWithin)
	defer cancel()
	if err := s.o.Clients.Renew(ctx, time.Since(c.started)); err != nil {
		c.aged(time.Since(s.o.Clients.CheckedAt()))
	}
}

// aged sets the Age header (RFC 9111 5.1) to age, if that is older than the current value.
func (c *call) aged(age time.Duration) {
	if age = max(age, time.Second); age > c.age {
		c.age = age
		c.Response().Header().Set(adminapi.AgeHeader, fmt.Sprint(int64(age.Seconds())))
	}
}

// activityOf sums up the decisions of the last ten minutes about one client, or about all clients
// that the candidate for the default limits was tried on. It leaves out decisions from before
// since, because they belong to an earlier candidate.
func activityOf(r *activity.Report, name string, since time.Time) *adminapi.Activity {
	v := &adminapi.Activity{Since: r.Since}
	for _, c := range r.Clients {
		if !c.TriedSince.Equal(since) {
			c.CandidateCounts = activity.CandidateCounts{}
		}
		switch {
		case name == c.ClientID:
			v.Counts = c.Counts
		case name == clientcfg.GlobalCandidate && c.Tried > 0:
			v.Counts = v.Plus(c.Counts)
			v.Clients = append(v.Clients, adminapi.ClientCounts{ClientID: c.ClientID, Counts: c.Counts})
		}
	}
	v.Clients = v.Clients[:min(len(v.Clients), maxListed)]
	return v
}
