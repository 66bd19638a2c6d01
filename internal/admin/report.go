package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/clientcfg"
)

// reportBody is what an instance tells the others, for operators.
type reportBody struct {
	Instance instanceDoc     `json:"instance"`
	Activity activity.Report `json:"activity"`
	Top      []usageDoc      `json:"top"`
}

// instanceDoc is one process.
type instanceDoc struct {
	ID        string          `json:"id"`
	Host      string          `json:"host"`
	Version   string          `json:"version"`
	StartedAt time.Time       `json:"started_at"`
	SeenAt    time.Time       `json:"seen_at"`
	Self      bool            `json:"self"` // it gave this answer
	Policies  policiesInForce `json:"policies"`
	Sync      *SyncState      `json:"sync"` // null: its counts are its own
}

// policiesInForce says how fresh an instance's policies are.
type policiesInForce struct {
	Version   int64     `json:"version"`
	Current   bool      `json:"current"` // it is the newest that any instance has
	CheckedAt time.Time `json:"checked_at"`
	// File names what the configuration file says about limits: instances
	// with different files do not agree on what applies.
	File  string `json:"file"`
	Error string `json:"error,omitempty"`
}

// topReported is how many keys an instance tells of.
const topReported = 20

// reportsLast is how long a report counts after the next was due.
const reportsLast = 3

// report is what this process tells now.
func (s *Server) report(now time.Time) reportBody {
	return reportBody{
		Instance: s.self(now),
		Activity: s.o.Activity.Report(now, activity.MaxReported),
		Top:      s.nearLimit(now),
	}
}

// Looking for the keys nearest their limits looks at every key. While that is
// quick, it is done whenever it is asked for; with very many keys no more than
// a hundredth of the time is spent on it.
const (
	quickLook = 10 * time.Millisecond
	lookShare = 100
)

// lastLook is what was found, and when to look again.
type lastLook struct {
	mu    sync.Mutex
	found []usageDoc
	due   time.Time // by the machine's clock
}

func (s *Server) nearLimit(now time.Time) []usageDoc {
	l := &s.look
	l.mu.Lock()
	defer l.mu.Unlock()
	began := time.Now()
	if began.Before(l.due) {
		return l.found
	}
	l.found, l.due = s.showUsages(s.o.Counters.Top(now, topReported), now), time.Time{}
	if took := time.Since(began); took > quickLook {
		l.due = began.Add(lookShare * took)
	}
	return l.found
}

func (s *Server) self(now time.Time) instanceDoc {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	st := s.o.Policies.Status()
	d := instanceDoc{
		ID: s.o.Instance, Host: host, Version: s.o.Version, StartedAt: s.begun.UTC(), SeenAt: now.UTC(), Self: true,
		Policies: policiesInForce{Version: st.Version, CheckedAt: st.CheckedAt.UTC(), File: s.fileDigest()},
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

// fileDigest names the limits of the configuration file.
func (s *Server) fileDigest() string {
	base := s.o.Policies.Policies().Base()
	base.Instance = "" // meant for one process alone
	tag, err := etagOf(0, base)
	if err != nil {
		return ""
	}
	return tag[3 : len(tag)-1]
}

// publish tells the others.
func (s *Server) publish(ctx context.Context) error {
	now := s.o.Now()
	r := s.report(now)
	r.Instance.Self = false
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("admin: encode the report: %w", err)
	}
	return s.o.Reports.PutReport(ctx, clientcfg.Report{
		Instance: s.o.Instance, At: now, Expires: now.Add(reportsLast * s.o.ReportEvery), Body: body,
	})
}

// Run tells the others of this process until ctx ends, and sweeps the trail. A
// failure is logged when it begins and when it ends.
func (s *Server) Run(ctx context.Context) error {
	failing := false
	var swept time.Time
	for {
		err := s.publish(ctx)
		if now := s.o.Now(); err == nil && now.Sub(swept) > sweepEvery {
			swept = now
			_, err = s.o.Audit.SweepAudit(ctx, now.Add(-s.o.AuditKept))
		}
		switch {
		case ctx.Err() != nil:
			return s.leave(context.WithoutCancel(ctx))
		case err != nil && !failing:
			s.log.LogAttrs(ctx, slog.LevelError, "cannot tell the other instances of this one", slog.Any("error", err))
		case err == nil && failing:
			s.log.LogAttrs(ctx, slog.LevelInfo, "telling the other instances again")
		}
		failing = err != nil
		timer := time.NewTimer(s.o.ReportEvery - rand.N(s.o.ReportEvery/10+1)) //nolint:gosec // spreads load
		select {
		case <-ctx.Done():
			timer.Stop()
			return s.leave(context.WithoutCancel(ctx))
		case <-timer.C:
		}
	}
}

const (
	sweepEvery  = time.Hour
	leaveWithin = time.Second
)

// leave takes this process off the list; if that fails, time does it.
func (s *Server) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	return s.o.Reports.DeleteReport(ctx, s.o.Instance)
}

// reports gathers what all instances tell, this one first and by itself. What
// the others told is at most a few report periods old.
func (s *Server) reports(ctx context.Context) []reportBody {
	now := s.o.Now()
	out := []reportBody{s.report(now)}
	stored, err := s.o.Reports.Reports(ctx, now)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the other instances' reports cannot be read", slog.Any("error", err))
		out[0].Activity.Incomplete = true
		return out
	}
	for _, r := range stored {
		if r.Instance == s.o.Instance {
			continue
		}
		var body reportBody
		if err := json.Unmarshal(r.Body, &body); err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "a report cannot be read",
				slog.String("instance", r.Instance), slog.Any("error", err))
			out[0].Activity.Incomplete = true
			continue
		}
		body.Instance.ID, body.Instance.Self = r.Instance, false
		out = append(out, body)
	}
	return out
}

// activity adds up what all instances decided.
func (s *Server) activity(ctx context.Context) activity.Report { return merged(s.reports(ctx)) }

func merged(all []reportBody) activity.Report {
	parts := make([]activity.Report, len(all))
	for i := range all {
		parts[i] = all[i].Activity
	}
	return activity.Merge(parts...)
}
