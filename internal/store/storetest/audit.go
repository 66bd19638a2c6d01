package storetest

import (
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
)

func testAudit(t *testing.T, target Target) {
	t.Helper()
	t.Run("queries", func(t *testing.T) { auditQueries(t, target.fresh(t)) })
	t.Run("the sweep takes what is old", func(t *testing.T) { auditSweep(t, target.fresh(t)) })
	t.Run("the sweep takes what is dated wrong", func(t *testing.T) { auditSweepMisdated(t, target.fresh(t)) })
	t.Run("the sweep takes many", func(t *testing.T) { auditSweepMany(t, target.fresh(t)) })
	t.Run("the sweep takes what cannot be read", func(t *testing.T) { auditSweepUnreadable(t, target) })
}

func versions(entries []clientcfg.AuditEntry) (out []int64) {
	for _, e := range entries {
		out = append(out, e.Version)
	}
	return out
}

func auditQueries(t *testing.T, b Backend) {
	t.Helper()
	write(t, b, 9)
	for _, q := range []struct {
		name  string
		query clientcfg.AuditQuery
		want  []int64
	}{
		{"all", clientcfg.AuditQuery{}, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1}},
		{"the newest", clientcfg.AuditQuery{Limit: 2}, []int64{9, 8}},
		{"the page after", clientcfg.AuditQuery{Limit: 2, Before: 8}, []int64{7, 6}},
		{"before the first", clientcfg.AuditQuery{Before: 1}, nil},
		{"before what is yet to come", clientcfg.AuditQuery{Before: 100, Limit: 1}, []int64{9}},
		{"of one target", clientcfg.AuditQuery{Target: "policies/client-1"}, []int64{7, 4, 1}},
		{"of one target, limited", clientcfg.AuditQuery{Target: "policies/client-1", Limit: 1, Before: 7}, []int64{4}},
		{"of an unknown target", clientcfg.AuditQuery{Target: "policies/client"}, nil},
	} {
		t.Run(q.name, func(t *testing.T) { equal(t, "versions", q.want, versions(audit(t, b, q.query))) })
	}
}

// auditSweep removes entries; the state, and the numbering, must not notice.
func auditSweep(t *testing.T, b Backend) {
	t.Helper()
	write(t, b, 5)
	sweep := func(before time.Time, want int) {
		t.Helper()
		n, err := b.SweepAudit(t.Context(), before, entryFor(200).At)
		succeed(t, "sweep", err)
		if n != want {
			t.Errorf("the sweep removed %d entries, want %d", n, want)
		}
	}
	sweep(entryFor(3).At, 2)
	equal(t, "versions", []int64{5, 4, 3}, versions(audit(t, b, clientcfg.AuditQuery{})))
	sweep(entryFor(3).At, 0)
	sweep(entryFor(100).At, 3)
	equal(t, "versions", []int64(nil), versions(audit(t, b, clientcfg.AuditQuery{})))
	state := foldedTo(t, 5)
	state.ID = "" // swept
	equal(t, "policies", state, policies(t, b))
	failWith(t, "a version that was swept", clientcfg.ErrPolicyConflict, b.AppendPolicyEntry(t.Context(), another(entryFor(5))))
	appendEntry(t, b, entryFor(6))
	equal(t, "policies", foldedTo(t, 6), policies(t, b))
	equal(t, "versions", []int64{6}, versions(audit(t, b, clientcfg.AuditQuery{})))
}

// auditSweepMisdated: the clocks of the writers of entries 3, 8 and 9 were wrong. None keeps the older
// ones, nor takes younger ones with it: each goes with the next, and instances follow without reading all
// again.
func auditSweepMisdated(t *testing.T, b Backend) {
	t.Helper()
	for version := int64(1); version <= 9; version++ {
		e := entryFor(version)
		switch version {
		case 3, 9:
			e.At = Epoch.AddDate(50, 0, 0)
		case 8:
			e.At = Epoch.AddDate(-50, 0, 0)
		}
		appendEntry(t, b, e)
	}
	s, err := clientcfg.NewPolicySource(t.Context(), b, clientcfg.PolicyOptions{})
	succeed(t, "start", err)
	for _, step := range []struct{ before, oldest int64 }{{2, 2}, {3, 3}, {4, 3}, {5, 5}, {6, 6}, {7, 7}, {8, 9}} {
		_, err := b.SweepAudit(t.Context(), entryFor(step.before).At, entryFor(9).At)
		succeed(t, "sweep", err)
		left := versions(audit(t, b, clientcfg.AuditQuery{}))
		equal(t, "oldest left", step.oldest, left[len(left)-1])
		equal(t, "newest left", int64(9), left[0])
		before := s.Snapshot()
		if refreshed(t, s) != before {
			t.Error("an instance reads all again")
		}
	}
	equal(t, "targets", foldedTo(t, 9).Targets, policies(t, b).Targets)
	appendEntry(t, b, entryFor(10))
	equal(t, "version of an instance", int64(10), refreshed(t, s).Version())
}

func auditSweepMany(t *testing.T, b Backend) {
	t.Helper()
	const n = 300
	write(t, b, n)
	removed, err := b.SweepAudit(t.Context(), entryFor(n).At, entryFor(n).At)
	succeed(t, "sweep", err)
	if removed != n-1 {
		t.Errorf("the sweep removed %d entries of %d", removed, n-1)
	}
	equal(t, "policies", foldedTo(t, n), policies(t, b))
}

// auditSweepUnreadable: an entry that cannot be read is as old as the one after it, unless the store has
// its time beside it. None stays for good.
func auditSweepUnreadable(t *testing.T, target Target) {
	t.Helper()
	for _, spoil := range target.SpoilEntry {
		b := target.fresh(t)
		write(t, b, 40)
		_, err := b.SweepAudit(t.Context(), entryFor(2).At, entryFor(100).At) // folds
		succeed(t, "sweep", err)
		for _, version := range []int64{2, 3, 5, 40} {
			spoil(t, b, version)
		}
		for _, step := range []struct{ before, oldest int64 }{{3, 2}, {4, 2}, {5, 5}, {6, 5}, {7, 7}, {40, 40}} {
			_, err = b.SweepAudit(t.Context(), entryFor(step.before).At, entryFor(100).At)
			succeed(t, "sweep", err)
			left := versions(audit(t, b, clientcfg.AuditQuery{}))
			if oldest := left[len(left)-1]; oldest < step.oldest || oldest > step.before {
				t.Errorf("swept before version %d, the oldest is %d, want %d to %d", step.before, oldest, step.oldest, step.before)
			}
		}
	}
}
