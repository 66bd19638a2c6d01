package mongo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/store/mongo/mongotest"
)

func subjectOf(n int, expires time.Time) sharing.Entry {
	return sharing.Entry{
		Key:     sharing.KeyOf(subject.DigestOf(fmt.Sprint(n)), "shop"),
		Subject: fmt.Sprintf("%08d-2a73-4d66-9f7f-1d9c1a7b8e21", n), Expires: expires,
	}
}

// TestSubjectsExpireOnTheServer: its TTL monitor removes them, and those only that have expired.
func TestSubjectsExpireOnTheServer(t *testing.T) {
	t.Parallel()
	uri, database, _ := strings.Cut(location(t), " ")
	s := openAt(t, uri, database)
	over, good := subjectOf(1, time.Now().Add(-time.Minute)), subjectOf(2, time.Now().Add(time.Hour).Truncate(time.Millisecond))
	check.OK(t, s.PutSubjects(t.Context(), []sharing.Entry{over, good}))
	check.Eventually(t, "the one that has expired is removed", func() bool {
		_, err := s.Subject(t.Context(), over.Key)
		return errors.Is(err, sharing.ErrNotFound)
	})
	got, err := s.Subject(t.Context(), good.Key)
	check.OK(t, err)
	check.Equal(t, "user", got.Subject, good.Subject)
}

// TestSubjectsInOneBulk: one unordered command. What another instance has inserted at the same moment is stored; any other
// failure of a part of it is one.
func TestSubjectsInOneBulk(t *testing.T) {
	t.Parallel()
	const duplicate, invalid = 11000, 121
	for name, c := range map[string]struct {
		codes []int
		fails bool
	}{
		"all stored":                         {},
		"stored by another":                  {codes: []int{duplicate}},
		"all of them":                        {codes: []int{duplicate, duplicate, duplicate}},
		"refused by the validator":           {codes: []int{invalid}, fails: true},
		"one by another, and one is refused": {codes: []int{duplicate, invalid}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, proxy := throughProxy(t)
			commands := 0
			proxy.Alter(mongotest.Alteration{Answer: func(command bson.D) bson.D {
				if command[0].Key != "update" {
					return nil
				}
				commands++
				if n := len(mongotest.Get[bson.A](command, "updates")); n != 3 || mongotest.Get[bool](command, "ordered") {
					t.Errorf("a command of %d updates: %v", n, command)
				}
				answer := bson.D{{Key: "n", Value: 3 - len(c.codes)}, {Key: "nModified", Value: 0}, {Key: "ok", Value: 1.0}}
				var errs bson.A
				for i, code := range c.codes {
					errs = append(errs, bson.D{{Key: "index", Value: i}, {Key: "code", Value: code}, {Key: "errmsg", Value: "no"}})
				}
				if errs != nil {
					answer = append(answer, bson.E{Key: "writeErrors", Value: errs})
				}
				return answer
			}})
			at := time.Now().Add(time.Hour)
			err := s.PutSubjects(t.Context(), []sharing.Entry{subjectOf(1, at), subjectOf(2, at), subjectOf(3, at)})
			check.Equal(t, "it fails", err != nil, c.fails)
			check.Equal(t, "commands", commands, 1)
		})
	}
}

// TestUnreadableSubjects: they count as failures, and the user is unknown.
func TestUnreadableSubjects(t *testing.T) {
	t.Parallel()
	uri, database, _ := strings.Cut(location(t), " ")
	s := openAt(t, uri, database)
	key := subjectOf(1, time.Time{}).Key
	for name, doc := range map[string]bson.D{
		"a number":         {{Key: "subject", Value: 7}, {Key: "expire", Value: time.Now().Add(time.Hour)}},
		"an end in words":  {{Key: "subject", Value: "ada"}, {Key: "expire", Value: "tomorrow"}},
		"an end far ahead": {{Key: "subject", Value: "ada"}, {Key: "expire", Value: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		_, err := s.subjects.ReplaceOne(t.Context(), byID(key[:]), doc, options.Replace().SetUpsert(true).SetBypassDocumentValidation(true))
		check.OK(t, err)
		_, err = s.Subject(t.Context(), key)
		check.Equal(t, name+" is read", err == nil || errors.Is(err, sharing.ErrNotFound), false)
	}
}

// BenchmarkSubjects reads users of refresh tokens that are there and that are not, on the server of MONGODB_TEST_URI, beside
// so many others:
//
//	go test -run '^$' -bench Subjects -benchtime 2000x ./internal/store/mongo -families 100000
//
// It reports the size of a document, and how long a batch takes to store.
func BenchmarkSubjects(b *testing.B) {
	s := benchStore(b, nil)
	at := time.Now().Add(time.Hour)
	var puts []time.Duration
	for first := 0; first < *benchFamilies; first += sharing.MaxBatch {
		batch := make([]sharing.Entry, 0, sharing.MaxBatch)
		for i := first; i < min(first+sharing.MaxBatch, *benchFamilies); i++ {
			batch = append(batch, subjectOf(i, at))
		}
		began := time.Now()
		check.OK(b, s.PutSubjects(b.Context(), batch))
		puts = append(puts, time.Since(began))
	}
	raw, err := s.subjects.FindOne(b.Context(), bson.D{}).Raw()
	check.OK(b, err)
	for name, first := range map[string]int{"found": 0, "unknown": *benchFamilies} {
		b.Run(name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			for i := range b.N {
				key := subjectOf(first+i*7919%*benchFamilies, at).Key
				began := time.Now()
				if _, err := s.Subject(b.Context(), key); err != nil && !errors.Is(err, sharing.ErrNotFound) {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			slices.Sort(puts)
			b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs")
			b.ReportMetric(float64(puts[len(puts)/2])/1e6, "put-1000-ms")
			b.ReportMetric(float64(len(raw)), "B/document")
		})
	}
}
