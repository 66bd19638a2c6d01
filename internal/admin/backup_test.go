package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// dataFile is the file that these tests back up and restore.
type dataFile struct {
	copying  func(w io.Writer) error
	restored []string
	refuses  error
}

func (d *dataFile) Copy(_ context.Context, w io.Writer, begin func(int64) error) error {
	if err := begin(4); err != nil {
		return err
	}
	return d.copying(w)
}

func (d *dataFile) Restore(_ context.Context, name string) error {
	d.restored = append(d.restored, name)
	return d.refuses
}

func whole(w io.Writer) error {
	_, err := io.WriteString(w, "data")
	return err
}

const localKey = "local-key"

func backupWorld(t *testing.T, d *dataFile) *instance {
	t.Helper()
	return newInstance(t, "i-1", openStore(t), file(), func(o *admin.Options) { o.LocalToken, o.Backups = localKey, d })
}

func (w *instance) local(rec http.ResponseWriter, method, path, remote, token string) {
	w.localAs("me@here", rec, method, path, remote, token)
}

// localAs sends a request with a token, from an address and with the name of an operator.
func (w *instance) localAs(operator string, rec http.ResponseWriter, method, path, remote, token string) {
	r := httptest.NewRequestWithContext(w.t.Context(), method, "/admin/v1"+path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set(adminlocal.OperatorHeader, operator)
	r.RemoteAddr = remote
	w.api.ServeHTTP(rec, r)
}

// TestBackupNeedsTheLocalKey: no scope and no operator is enough to read or replace the data file.
//
// Attack (operators): Copying the data file over the API. Backup and restore need the local key.
// No scope is enough. Also admin.TestLocalKey.
func TestBackupNeedsTheLocalKey(t *testing.T) {
	d := &dataFile{copying: whole}
	w := backupWorld(t, d)
	for _, tt := range []struct {
		token, remote string
		want          int
	}{
		{writer, "127.0.0.1:1", http.StatusForbidden},
		{reader, "127.0.0.1:1", http.StatusForbidden},
		{"plain", "127.0.0.1:1", http.StatusUnauthorized},
		{localKey, "192.0.2.1:1", http.StatusUnauthorized},
	} {
		for _, call := range [][2]string{{http.MethodGet, "/backup"}, {http.MethodPost, "/restore?file=x"}} {
			rec := httptest.NewRecorder()
			w.local(rec, call[0], call[1], tt.remote, tt.token)
			check.Equal(t, tt.token+" from "+tt.remote+" "+call[1], rec.Code, tt.want)
		}
	}
	check.Equal(t, "restored", len(d.restored), 0)
	events, err := w.store.Events(t.Context(), clientcfg.EventQuery{Target: clientcfg.StoreTarget})
	check.OK(t, err)
	check.Equal(t, "events", len(events), 0)
}

// TestBackup checks the copy, and the event with its actor and time.
func TestBackup(t *testing.T) {
	d := &dataFile{copying: whole}
	w := backupWorld(t, d)
	event := func() clientcfg.Event {
		events, err := w.store.Events(t.Context(), clientcfg.EventQuery{Target: clientcfg.StoreTarget, Limit: 1})
		check.OK(t, err)
		check.Equal(t, "events", len(events), 1)
		return events[0]
	}
	rec := httptest.NewRecorder()
	w.local(rec, http.MethodGet, "/backup?reason=nightly", "127.0.0.1:1", localKey)
	check.Equal(t, "status", rec.Code, http.StatusOK)
	check.Equal(t, "body", rec.Body.String(), "data")
	check.Equal(t, "length", rec.Header().Get("Content-Length"), "4")
	e := event()
	check.Equal(t, "event", [4]string{e.Action, e.Target, e.Actor.Store, e.Reason}, [4]string{"backup", "store", "me@here", "nightly"})
	check.Equal(t, "unknown", e.Unknown, false)

	w.clock.Advance(time.Minute)
	d.copying = func(w io.Writer) error {
		_, _ = io.WriteString(w, "da")
		return errors.New("it ended")
	}
	rec = httptest.NewRecorder()
	w.local(rec, http.MethodGet, "/backup", "127.0.0.1:1", localKey)
	check.Equal(t, "what was sent", rec.Body.String(), "da")
	check.Equal(t, "it may be a part only", event().Unknown, true)
}

// TestOneBackupAtATime: only one runs at once, because each pins pages of the data file.
func TestOneBackupAtATime(t *testing.T) {
	d := &dataFile{}
	w := backupWorld(t, d)
	inner := httptest.NewRecorder()
	d.copying = func(out io.Writer) error {
		w.local(inner, http.MethodGet, "/backup", "127.0.0.1:1", localKey)
		return whole(out)
	}
	rec := httptest.NewRecorder()
	w.local(rec, http.MethodGet, "/backup", "127.0.0.1:1", localKey)
	check.Equal(t, "status", rec.Code, http.StatusOK)
	check.Equal(t, "status of another meanwhile", inner.Code, http.StatusConflict)
	d.copying = whole
	rec = httptest.NewRecorder()
	w.local(rec, http.MethodGet, "/backup", "127.0.0.1:1", localKey)
	check.Equal(t, "status of the next", rec.Code, http.StatusOK)
}

// deadlines is a connection that records its write deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestBackupIsCutOffFromASlowReader: each write has its own deadline, a few seconds later.
func TestBackupIsCutOffFromASlowReader(t *testing.T) {
	w := backupWorld(t, &dataFile{copying: func(w io.Writer) error { return errors.Join(whole(w), whole(w)) }})
	rec := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	w.local(rec, http.MethodGet, "/backup", "127.0.0.1:1", localKey)
	check.Equal(t, "deadlines", len(rec.set), 2)
	for _, at := range rec.set {
		if left := time.Until(at); left <= 0 || left > time.Minute {
			t.Errorf("the deadline is in %s", left)
		}
	}
}

// TestRestoreIsAskedFor: the restore is in the trail before the server accepts or refuses it.
func TestRestoreIsAskedFor(t *testing.T) {
	d := &dataFile{refuses: errors.New("it is damaged")}
	w := backupWorld(t, d)
	rec := httptest.NewRecorder()
	w.local(rec, http.MethodPost, "/restore?file=prepared", "127.0.0.1:1", localKey)
	check.Equal(t, "status", rec.Code, http.StatusConflict)
	events, err := w.store.Events(t.Context(), clientcfg.EventQuery{Target: clientcfg.StoreTarget})
	check.OK(t, err)
	check.Equal(t, "events", len(events), 1)
	d.refuses = nil
	rec = httptest.NewRecorder()
	w.local(rec, http.MethodPost, "/restore?file=prepared&reason=lost", "127.0.0.1:1", localKey)
	check.Equal(t, "status", rec.Code, http.StatusAccepted)
	check.Equal(t, "restored", d.restored, []string{"prepared", "prepared"})
	events, err = w.store.Events(t.Context(), clientcfg.EventQuery{Target: clientcfg.StoreTarget})
	check.OK(t, err)
	check.Equal(t, "events", len(events), 2)
	check.Equal(t, "unknown", events[0].Unknown, true)
}

// TestNoBackupOfADatabase: a database has its own tools.
func TestNoBackupOfADatabase(t *testing.T) {
	w := newWorld(t)
	a := w.send(request{method: http.MethodGet, path: "/backup", token: writer})
	check.Equal(t, "status", a.status, http.StatusConflict)
}
