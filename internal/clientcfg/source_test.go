package clientcfg_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/overload"
)

func TestSourceStartsOnlyWithAGoodDirectory(t *testing.T) {
	s := storeOf(t)
	f := followerOf(t, s.reads)
	s.fail(errors.New("down"))
	if _, err := clientcfg.NewSource(t.Context(), f, nil); err == nil {
		t.Error("started without a store")
	}
}

func TestSourceReadsOnlyWhatChanged(t *testing.T) {
	store := storeOf(t, named("a"))
	source := store.source(nil)
	store.put(named("a"), named("b"))
	store.refresh()
	if _, ok := source.Client("b"); !ok {
		t.Error("the new client is not seen")
	}
	check.Equal(t, "revision", source.Directory().Revision(), int64(2))
	check.OK(t, clientcfg.NewAuditTrail(store.another).AddEvent(t.Context(), clientcfg.Event{Target: "store"}))
	store.put(named("b"))
	store.refresh()
	check.Equal(t, "clients", ids(source.Directory()), []string{"b"})
	check.Equal(t, "reads of all clients", store.reads.lists, 1)
}

// TestSourceKeepsTheLastGoodDirectory: if the store cannot be read, the last directory stays.
func TestSourceKeepsTheLastGoodDirectory(t *testing.T) {
	store := storeOf(t, named("a"))
	source := store.source(nil)
	store.put(named("b"))
	store.fail(errors.New("down"))
	requireError(t, store.another.Refresh(t.Context()), "down")
	requireError(t, source.Renew(t.Context(), 0), "down")
	if _, ok := source.Client("a"); !ok {
		t.Error("a refresh that failed replaced the good directory")
	}
	store.fail(nil)
	check.OK(t, source.Renew(t.Context(), 0))
	if _, ok := source.Client("a"); ok {
		t.Error("the deleted client is still there")
	}
}

// TestSourceRefusesWhoWaitsTooLong: if a read of the store hangs, a request behind it waits a
// second and then gets a retry time, which grows with the outage. An earlier request is not
// refused.
func TestSourceRefusesWhoWaitsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storeOf(t, named("a"))
		source := store.source(nil)
		store.slow(time.Hour)
		var refresh sync.WaitGroup
		refresh.Go(func() { check.OK(t, store.another.Refresh(context.WithoutCancel(t.Context()))) })
		defer refresh.Wait()
		synctest.Wait()
		for _, earliest := range []time.Duration{time.Second, 10 * time.Second} {
			began := time.Now()
			err := source.Renew(t.Context(), 0)
			var shed *overload.ShedError
			if !errors.As(err, &shed) || shed.Short != overload.Store || shed.RetryAfter < earliest {
				t.Errorf("Renew() = %v, want a refusal for want of the store, for %v at least", err, earliest)
			}
			check.Equal(t, "waited", time.Since(began), time.Second)
			<-time.After(time.Minute)
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		var shed *overload.ShedError
		if err := source.Renew(gone, 0); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &shed) {
			t.Errorf("Renew() of a caller that goes = %v", err)
		}
	})
}

// TestUnreadableClientTakesOnlyItselfOut: the source starts and follows changes despite an invalid
// client, and logs once when that begins and once when it ends.
//
// Attack (revocation): An unreadable record stops the server. Only that record is left out. Also
// cli.TestUnreadableUserOfAFile.
func TestUnreadableClientTakesOnlyItselfOut(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	broken, odd := clientcfg.Client{ID: "broken"}, named("odd")
	odd.Grants = []clientcfg.Grant{"of_a_newer_release"}
	store := storeOf(t, broken, named("a"))
	source := store.source(logger)
	steps := []struct {
		name       string
		put        []clientcfg.Client
		unreadable []string
		logged     string // parts of the log lines, in order
	}{
		{"a client beside it is registered", []clientcfg.Client{broken, named("a"), named("b")}, []string{"broken"}, ""},
		{"another is spoilt", []clientcfg.Client{broken, named("a"), odd}, []string{"broken", "odd"}, "level=ERROR client_id=odd error="},
		{"one is mended", []clientcfg.Client{named("broken"), named("a"), odd}, []string{"odd"}, "level=INFO again client_id=broken"},
		{"one is deleted", []clientcfg.Client{named("broken"), named("a")}, nil, "level=INFO deleted client_id=odd"},
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "client_id=broken") {
		t.Errorf("logged at the start: %q", got)
	}
	for _, step := range steps {
		log.Reset()
		store.put(step.put...)
		store.refresh()
		store.refresh()
		d := source.Directory()
		if got := slices.Sorted(maps.Keys(d.Unreadable())); !slices.Equal(got, step.unreadable) {
			t.Errorf("%s: unreadable are %q, want %q", step.name, got, step.unreadable)
		}
		if got, want := d.Len(), len(step.put)-len(step.unreadable); got != want {
			t.Errorf("%s: %d clients are served, want %d", step.name, got, want)
		}
		rest := log.String()
		if (rest == "") != (step.logged == "") || strings.Count(rest, "\n") > 1 {
			t.Errorf("%s: logged %q", step.name, rest)
		}
		for _, part := range strings.Fields(step.logged) {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Errorf("%s: logged %q, which lacks %q", step.name, rest, part)
			}
			rest = after
		}
	}
}

func TestManyUnreadableClientsAreFewLines(t *testing.T) {
	var log strings.Builder
	list := []clientcfg.Client{named("good")}
	for i := range 200 {
		list = append(list, clientcfg.Client{ID: strconv.Itoa(i)})
	}
	source := storeOf(t, list...).source(slog.New(slog.NewTextHandler(&log, nil)))
	if lines := strings.Count(log.String(), "\n"); lines > 25 || !strings.Contains(log.String(), "unreadable=200") {
		t.Errorf("%d lines: %s", lines, &log)
	}
	if _, ok := source.Client("good"); !ok {
		t.Error("the one that can be read is not served")
	}
}
