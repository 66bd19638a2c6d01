package storetest

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/gateway/sharing"
)

func testSubjects(t *testing.T, target Target) {
	t.Helper()
	t.Run("kept by key", func(t *testing.T) { subjectsKept(t, target.fresh(t)) })
	t.Run("the largest batch", func(t *testing.T) { subjectsMany(t, target.fresh(t)) })
	t.Run("stored by several at once", func(t *testing.T) { subjectsAtOnce(t, target.fresh(t)) })
	t.Run("swept when expired", func(t *testing.T) { subjectsSwept(t, target.fresh(t)) })
	t.Run("kept over a restart", func(t *testing.T) { subjectsLast(t, target) })
}

// banTime is far ahead: MongoDB removes what has expired.
var banTime = Epoch.AddDate(100, 0, 0)

// subjectEntry is the entry of a number, which is far ahead: MongoDB removes what has expired.
func subjectEntry(n int, user string) sharing.Entry {
	e := sharing.Entry{Subject: user, Expires: banTime.Add(time.Duration(n) * time.Millisecond)}
	binary.BigEndian.PutUint64(e.Key[3:], uint64(n))
	return e
}

func readSubject(t *testing.T, b Backend, want sharing.Entry) {
	t.Helper()
	got, err := b.Subject(t.Context(), want.Key)
	succeed(t, "read", err)
	equal(t, "entry", want, got)
}

func noSubject(t *testing.T, b Backend, k sharing.Key) {
	t.Helper()
	_, err := b.Subject(t.Context(), k)
	failWith(t, "read", sharing.ErrNotFound, err)
}

func subjectsKept(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	noSubject(t, b, subjectEntry(1, "").Key)
	succeed(t, "put nothing", b.PutSubjects(ctx, nil))
	list := []sharing.Entry{
		subjectEntry(0, "ada"), subjectEntry(1, "älice"), subjectEntry(2, strings.Repeat("x", 255)),
		subjectEntry(3, "{\"$gt\": 1}"),
	}
	succeed(t, "put", b.PutSubjects(ctx, list))
	for _, e := range list {
		readSubject(t, b, e)
	}
	noSubject(t, b, subjectEntry(4, "").Key)
	again := list[1]
	again.Subject, again.Expires = "bob", again.Expires.Add(-time.Hour)
	succeed(t, "put again, with another", b.PutSubjects(ctx, []sharing.Entry{subjectEntry(5, "eve"), again}))
	readSubject(t, b, again)
	readSubject(t, b, subjectEntry(5, "eve"))
	readSubject(t, b, list[2])
}

func subjectsMany(t *testing.T, b Backend) {
	t.Helper()
	list := make([]sharing.Entry, sharing.MaxBatch)
	for i := range list {
		list[i] = subjectEntry(i, fmt.Sprint("user ", i))
	}
	for range 2 {
		succeed(t, "put", b.PutSubjects(t.Context(), list))
	}
	for i := 0; i < len(list); i += 111 {
		readSubject(t, b, list[i])
	}
}

// subjectsAtOnce: all succeed, and leave what one of them has stored.
func subjectsAtOnce(t *testing.T, b Backend) {
	t.Helper()
	const callers, keys = 8, 50
	errs := make([]error, callers)
	together(callers, func(i int) {
		list := make([]sharing.Entry, keys)
		for k := range list {
			list[k] = subjectEntry(k, fmt.Sprint("user ", k))
			list[k].Expires = list[k].Expires.Add(time.Duration(i) * time.Hour)
		}
		errs[i] = b.PutSubjects(t.Context(), list)
	})
	for _, err := range errs {
		succeed(t, "put", err)
	}
	for k := range keys {
		want := subjectEntry(k, fmt.Sprint("user ", k))
		got, err := b.Subject(t.Context(), want.Key)
		succeed(t, "read", err)
		equal(t, "user", want.Subject, got.Subject)
		if past := got.Expires.Sub(want.Expires); past < 0 || past >= callers*time.Hour || past%time.Hour != 0 {
			t.Errorf("it expires at %s, which nobody has stored", got.Expires)
		}
	}
}

func subjectsSwept(t *testing.T, b Backend) {
	t.Helper()
	at, late := subjectEntry(1, "ada"), subjectEntry(2, "bob")
	at.Expires, late.Expires = Epoch, Epoch.Add(time.Hour)
	succeed(t, "put", b.PutSubjects(t.Context(), []sharing.Entry{at, late}))
	sweep(t, b, Epoch, 0)
	readSubject(t, b, at) // the caller compares the expiry
	sweep(t, b, Epoch.Add(time.Millisecond), 1)
	noSubject(t, b, at.Key)
	readSubject(t, b, late)
	succeed(t, "put again", b.PutSubjects(t.Context(), []sharing.Entry{at}))
	readSubject(t, b, at)
}

func subjectsLast(t *testing.T, target Target) {
	t.Helper()
	location := target.Location(t)
	b, err := target.Open(t.Context(), location)
	succeed(t, "open", err)
	succeed(t, "put", b.PutSubjects(t.Context(), []sharing.Entry{subjectEntry(1, "ada")}))
	succeed(t, "close", b.Close())
	readSubject(t, target.open(t, location), subjectEntry(1, "ada"))
}
