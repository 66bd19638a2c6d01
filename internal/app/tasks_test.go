package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTasks: what is repeated, and how often. A change of clients or policies is in force on every
// instance after the longest wait, at most.
func TestTasks(t *testing.T) {
	cfg := testConfig(t)
	cfg.TLS = certificateFiles(t)
	writeCertificate(t, cfg.TLS, 1)
	s, err := New(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
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
		"signing keys":   {Every: time.Minute},
		"withdrawn keys": {Every: time.Second},
		"clients":        {Every: 2 * time.Second},
		"policies":       {Every: time.Second},
		"audit sweep":    {Every: time.Hour, Retry: time.Minute, First: true},
		"sweep":          {Every: time.Minute},
		"certificate":    {Every: 10 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks() (-want +got):\n%s", diff)
	}
}
