package storetest

import (
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
)

func testReports(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	put := func(instance, body string, at time.Time) clientcfg.Report {
		t.Helper()
		r := clientcfg.Report{Instance: instance, At: at, Expires: at.Add(time.Minute), Body: []byte(body)}
		succeed(t, "put", b.PutReport(ctx, r))
		return r
	}
	list := func(now time.Time) []clientcfg.Report {
		t.Helper()
		reports, err := b.Reports(ctx, now)
		succeed(t, "reports", err)
		return reports
	}
	equal(t, "nobody", []clientcfg.Report{}, list(Epoch))
	second := put("b", `{"a.b":1}`, Epoch)
	put("a", `{"$x":[]}`, Epoch)
	first := put("a", `{"$x":[1]}`, Epoch.Add(time.Second))
	equal(t, "both, in order", []clientcfg.Report{first, second}, list(Epoch))
	equal(t, "the one that has not expired", []clientcfg.Report{first}, list(Epoch.Add(time.Minute+time.Millisecond)))
	succeed(t, "delete", b.DeleteReport(ctx, "a"))
	succeed(t, "delete again", b.DeleteReport(ctx, "a"))
	for _, r := range list(Epoch) {
		if r.Instance == "a" {
			t.Error("a deleted report is still there")
		}
	}
}
