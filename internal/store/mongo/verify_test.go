package mongo

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

func numbers(checks []Check) (list []int) {
	for _, c := range checks {
		list = append(list, c.Number)
	}
	return list
}

// TestVerify: the test server has all properties that exact counts depend on, and the checks leave
// nothing behind.
func TestVerify(t *testing.T) {
	_, s, _ := throughProxy(t)
	before := collections(t, s)
	r, err := s.Verify(t.Context(), VerifyOptions{})
	check.OK(t, err)
	if failed := r.Inexact(); len(failed) > 0 {
		t.Errorf("%+v", failed)
	}
	check.Equal(t, "checks", len(r.Checks), len(relied))
	check.Equal(t, "collections", collections(t, s), before)
}

// TestVerifyCounters: the short form runs the checks of reads and writes, and leaves no document.
func TestVerifyCounters(t *testing.T) {
	_, s, _ := throughProxy(t)
	r, err := s.VerifyCounters(t.Context())
	check.OK(t, err)
	if failed := r.Inexact(); len(failed) > 0 {
		t.Errorf("%+v", failed)
	}
	check.Equal(t, "the checks", numbers(r.Checks), []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if n, err := s.counters.CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
		t.Errorf("%d documents are left, %v", n, err)
	}
}

func collections(t *testing.T, s *Store) []string {
	t.Helper()
	names, err := s.db.ListCollectionNames(t.Context(), bson.D{})
	check.OK(t, err)
	slices.Sort(names)
	return names
}

// TestVerifyCleansUp: the scratch collection is removed no matter how the checks end.
func TestVerifyCleansUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends func(cancel context.CancelFunc) mongotest.Alteration
	}{
		{"cancelled", func(cancel context.CancelFunc) mongotest.Alteration {
			return requests("update", func(c bson.D) bson.D {
				cancel()
				return c
			})
		}},
		{"an error", func(context.CancelFunc) mongotest.Alteration {
			return mongotest.Refuses("update", 13, "Unauthorized", "not allowed")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, direct, proxy := throughProxy(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			proxy.Alter(tt.ends(cancel))
			before := collections(t, direct)
			if r, err := s.Verify(ctx, VerifyOptions{}); err == nil {
				t.Errorf("no error, but %+v", r)
			}
			check.Equal(t, "collections", collections(t, direct), before)
			if n, err := direct.counters.CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
				t.Errorf("%d counters, %v", n, err)
			}
		})
	}
}

// TestVerifyCountersRights: the short form does not need the right to create collections. Without
// the right to write it reports that.
func TestVerifyCountersRights(t *testing.T) {
	s, _, proxy := throughProxy(t)
	refuse := func(names ...string) mongotest.Alteration {
		return mongotest.Alteration{Answer: func(c bson.D) bson.D {
			if slices.Contains(names, c[0].Key) {
				return mongotest.Refusal(13, "Unauthorized", "not allowed")
			}
			return nil
		}}
	}
	proxy.Alter(refuse("create", "drop", "createIndexes", "collMod", "listCollections", "findAndModify"))
	if r, err := s.VerifyCounters(t.Context()); err != nil || len(r.Inexact()) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	proxy.Alter(refuse("update"))
	if r, err := s.VerifyCounters(t.Context()); !hasCode(err, unauthorized) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReliedIsDocumented: the checks have the numbers and names of the list in the operators'
// documentation.
func TestReliedIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/deployment.md")
	check.OK(t, err)
	type item struct{ Number, Name string }
	var want, got []item
	for i, p := range relied {
		want = append(want, item{strconv.Itoa(i + 1), p.name})
	}
	for _, text := range regexp.MustCompile(`(?m)^\d+\. \*\*.*(\n   .*)*`).FindAllString(string(page), -1) {
		text = strings.Join(strings.Fields(text), " ")
		parts := regexp.MustCompile(`^(\d+)\. \*\*(.*?)\*\*: .*\.$`).FindStringSubmatch(text)
		if parts == nil {
			t.Fatalf("not of the form \"1. **name**: what is meant.\": %s", text)
		}
		got = append(got, item{parts[1], parts[2]})
	}
	check.Equal(t, "docs/deployment.md", got, want)
}

// TestVerifyKeepsFindings: results from before the server becomes unavailable are returned together
// with the error.
func TestVerifyKeepsFindings(t *testing.T) {
	s, proxy := impatient(t)
	proxy.Alter(mongotest.Alteration{Answer: func(c bson.D) bson.D {
		if strings.Contains(c.String(), "many writers") {
			proxy.Break()
		}
		return nil
	}})
	r, err := s.Verify(t.Context(), VerifyOptions{})
	if err == nil || len(r.Checks) != len(relied) {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, c := range r.Checks {
		if want := (i < 10); (c.Status == CheckOK) != want || (c.Status == CheckUnchecked) == want {
			t.Errorf("got %+v", c)
		}
	}
}
