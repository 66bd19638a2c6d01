package mongo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestVerifyFinds: for each way in which a server can differ from MongoDB, exactly the checks that
// it affects fail.
func TestVerifyFinds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server mongotest.Alteration
		want   []int
	}{
		{"ordered is ignored", alwaysOrdered(false), []int{2}},
		{"every bulk stops", alwaysOrdered(true), []int{1}},
		{"the wrong write is named", replies("update", "writeErrors", firstOfAll), []int{1, 2}},
		{"the order of fields is ignored", mongotest.Alteration{Request: func(c bson.D) bson.D { return inOrder(c).(bson.D) }}, []int{6}},
		{"sequences are ignored", updates(withoutSequences), []int{4}},
		{"missing sequences do not match", updates(lowerSequence), []int{4}},
		{"counts in filters are ignored", updates(func(u bson.D) bson.D { return dropped(u, "q", "requestCounters.") }), []int{5}},
		{"versions in filters are ignored", updates(func(u bson.D) bson.D { return dropped(u, "q", "version") }), []int{3, 12}},
		{"nonces in filters are ignored", updates(func(u bson.D) bson.D { return dropped(u, "q", "nonce") }), []int{12}},
		{"$max is $set", updates(maxIsSet), []int{7}},
		{"$unset is left out", updates(func(u bson.D) bson.D { return dropped(u, "u", "$unset") }), []int{5, 8, 12}},
		{"numbers are doubles", updates(incDoubles), []int{9}},
		{"a range has no end", requests("find", func(c bson.D) bson.D { return mongotest.With(c, "filter", withoutEnd(c)) }), []int{10}},
		{"inserts always succeed", replies("insert", "writeErrors", nil), []int{11}},
		{"sequences compare as doubles", updates(asDoubles), []int{4, 5}},
		{"a deleted range has no end", requests("delete", deleteWithoutEnd), []int{10}},
		{"it is a secondary", mongotest.Alteration{Answer: secondary}, []int{13}},
		{"TTL indexes are refused", mongotest.Refuses("createIndexes", 67, "CannotCreateIndex", "no TTL"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, direct, proxy := throughProxy(t)
			proxy.Alter(tt.server)
			r, err := s.Verify(t.Context(), VerifyOptions{})
			check.OK(t, err)
			if diff := cmp.Diff(tt.want, numbers(r.Inexact())); diff != "" {
				t.Errorf("checks that are not ok (-want +got):\n%s\n%+v", diff, r.Inexact())
			}
			for _, c := range r.Checks {
				if c.Status != CheckOK && (c.Detail == "" || c.Follows == "") || c.Status == CheckUnchecked || strings.Contains(c.Detail, "no answer") {
					t.Errorf("not explained: %+v", c)
				}
			}
			if left := collections(t, direct); strings.Contains(fmt.Sprint(left), "verify") {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// alwaysOrdered runs every bulk to its end, or stops it at its first error.
func alwaysOrdered(stops bool) mongotest.Alteration {
	return mongotest.Alteration{Request: func(c bson.D) bson.D { return mongotest.With(c, "ordered", stops) }}
}

// updates changes every statement of the command "update".
func updates(change func(bson.D) bson.D) mongotest.Alteration {
	return requests("update", func(command bson.D) bson.D {
		updates := bson.A{}
		for _, u := range mongotest.Get[bson.A](command, "updates") {
			updates = append(updates, change(u.(bson.D)))
		}
		return mongotest.With(command, "updates", updates)
	})
}

// withoutSequences leaves the writers' sequences out of the filter.
func withoutSequences(update bson.D) bson.D {
	return mongotest.With(update, "q", slices.DeleteFunc(mongotest.Get[bson.D](update, "q"), func(e bson.E) bool {
		_, condition := e.Value.(bson.D)
		return condition && strings.HasPrefix(e.Key, "writers.")
	}))
}

// inOrder puts the fields of every embedded _id into one order, so two that differ only in it are equal.
func inOrder(value any) any {
	switch value := value.(type) {
	case bson.D:
		value = slices.Clone(value)
		if len(value) == 2 && value[0].Key == "username" && value[1].Key == "clientId" {
			slices.Reverse(value)
		}
		for i := range value {
			value[i].Value = inOrder(value[i].Value)
		}
		return value
	case bson.A:
		value = slices.Clone(value)
		for i := range value {
			value[i] = inOrder(value[i])
		}
		return value
	}
	return value
}

func requests(name string, change func(bson.D) bson.D) mongotest.Alteration {
	return mongotest.Alteration{Request: func(c bson.D) bson.D {
		if c[0].Key != name {
			return c
		}
		return change(c)
	}}
}

// replies changes one field of the replies to a command; nil removes it.
func replies(name, key string, change func(value any) any) mongotest.Alteration {
	return mongotest.Alteration{Reply: func(c, reply bson.D) bson.D {
		if c[0].Key != name {
			return reply
		}
		rest := without(reply, key)
		if change == nil {
			return rest
		}
		if value := change(mongotest.Get[bson.A](reply, key)); value != nil {
			rest = append(rest, bson.E{Key: key, Value: value})
		}
		return rest
	}}
}

// firstOfAll attributes every error to the first write.
func firstOfAll(list any) any {
	errs := list.(bson.A)
	for i := range errs {
		errs[i] = mongotest.With(errs[i].(bson.D), "index", 0)
	}
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// lowerSequence is a wrong form of the fallback filter.
func lowerSequence(update bson.D) bson.D {
	q := slices.Clone(mongotest.Get[bson.D](update, "q"))
	for i := range q {
		if not, ok := q[i].Value.(bson.D); ok && strings.HasPrefix(q[i].Key, "writers.") {
			q[i].Value = field("$lt", not[0].Value.(bson.D)[0].Value)
		}
	}
	return mongotest.With(update, "q", q)
}

// dropped returns the statement without the fields of part that have the prefix.
func dropped(update bson.D, part, prefix string) bson.D {
	rest := slices.DeleteFunc(slices.Clone(mongotest.Get[bson.D](update, part)), func(e bson.E) bool { return strings.HasPrefix(e.Key, prefix) })
	return mongotest.With(update, part, rest)
}

func maxIsSet(update bson.D) bson.D {
	u := mongotest.Get[bson.D](update, "u")
	return mongotest.With(update, "u", mongotest.With(without(u, "$max"), "$set", fields(mongotest.Get[bson.D](u, "$set"), mongotest.Get[bson.D](u, "$max"))))
}

func incDoubles(update bson.D) bson.D {
	u := mongotest.Get[bson.D](update, "u")
	inc := slices.Clone(mongotest.Get[bson.D](u, "$inc"))
	for i := range inc {
		inc[i].Value = float64(inc[i].Value.(int64))
	}
	return mongotest.With(update, "u", mongotest.With(u, "$inc", inc))
}

func withoutEnd(find bson.D) bson.D {
	filter := mongotest.Get[bson.D](find, "filter")
	if len(filter) == 0 {
		return filter
	}
	if id, ok := filter[0].Value.(bson.D); ok {
		return field("_id", without(id, "$lte"))
	}
	return filter
}

func asDoubles(update bson.D) bson.D {
	q := slices.Clone(mongotest.Get[bson.D](update, "q"))
	for i := range q {
		if q[i].Key != "pruned" && !strings.HasPrefix(q[i].Key, "writers.") {
			continue
		}
		if seq, ok := q[i].Value.(int64); ok {
			q[i].Value = fields(field("$gte", rounded(seq, -1)), field("$lte", rounded(seq, 1)))
		} else {
			seq := mongotest.Get[int64](mongotest.Get[bson.D](q[i].Value.(bson.D), "$not"), "$gte")
			q[i].Value = field("$not", field("$gte", rounded(seq, -1)))
		}
	}
	return mongotest.With(update, "q", q)
}

// rounded returns the last number in that direction with the same double.
func rounded(n, step int64) int64 {
	for float64(n) == float64(n+step) {
		n += step
	}
	return n
}

func deleteWithoutEnd(c bson.D) bson.D {
	deletes := bson.A{}
	for _, d := range mongotest.Get[bson.A](c, "deletes") {
		deletes = append(deletes, mongotest.With(d.(bson.D), "q", withoutEnd(field("filter", mongotest.Get[bson.D](d.(bson.D), "q")))))
	}
	return mongotest.With(c, "deletes", deletes)
}

func secondary(c bson.D) bson.D {
	if c[0].Key != "hello" {
		return nil
	}
	return fields(field("ok", 1.0), field("isWritablePrimary", false), field("secondary", true), field("setName", "rs0"), field("localTime", time.Now()))
}

// TestVerifyOptional: properties that exact counts do not depend on are still reported.
func TestVerifyOptional(t *testing.T) {
	farFuture := requests("insert", func(c bson.D) bson.D {
		docs := mongotest.Get[bson.A](c, "documents")
		if mongotest.Get[string](docs[0].(bson.D), "_id") != "expired" {
			return c
		}
		return mongotest.With(c, "documents", bson.A{mongotest.With(docs[0].(bson.D), "expire", time.Now().Add(time.Hour))})
	})
	for _, tt := range []struct {
		name    string
		server  mongotest.Alteration
		options VerifyOptions
		check   int
		status  CheckStatus
		says    string
	}{
		{"an index exists", mongotest.Alteration{}, VerifyOptions{}, 15, CheckOK, "index exists"},
		{"TTL indexes are refused", mongotest.Refuses("createIndexes", 67, "CannotCreateIndex", "no TTL"), VerifyOptions{}, 15, CheckMissing, "no TTL"},
		{"an index without its time", mongotest.Alteration{Answer: indexesWithoutTime}, VerifyOptions{}, 15, CheckMissing, "without expireAfterSeconds"},
		{"the monitor deletes", mongotest.Alteration{}, VerifyOptions{WaitTTL: time.Minute}, 15, CheckOK, "deleted within"},
		{"the monitor does not", farFuture, VerifyOptions{WaitTTL: time.Second}, 15, CheckMissing, "nothing was deleted"},
		{"no time", mongotest.Alteration{Answer: timeless}, VerifyOptions{}, 14, CheckMissing, "time"},
		{"another time", mongotest.Alteration{Answer: hourAhead}, VerifyOptions{}, 14, CheckFailed, " ahead of ours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, _, proxy := throughProxy(t)
			proxy.Alter(tt.server)
			r, err := s.Verify(t.Context(), tt.options)
			check.OK(t, err)
			c := r.Checks[tt.check-1]
			if c.Status != tt.status || !strings.Contains(c.Detail, tt.says) || len(r.Inexact()) > 0 {
				t.Errorf("got %+v, want %s with %q; not exact: %+v", c, tt.status, tt.says, r.Inexact())
			}
		})
	}
}

func indexesWithoutTime(c bson.D) bson.D {
	if c[0].Key != "listIndexes" {
		return nil
	}
	index := fields(field("v", 2), field("key", field("expire", 1)), field("name", "expire"))
	return fields(field("cursor", fields(field("id", int64(0)), field("ns", "x.y"), field("firstBatch", bson.A{index}))), field("ok", 1.0))
}

func timeless(c bson.D) bson.D {
	if c[0].Key != "hello" {
		return nil
	}
	return fields(field("ok", 1.0), field("isWritablePrimary", true))
}

func hourAhead(c bson.D) bson.D {
	if c[0].Key != "hello" {
		return nil
	}
	return fields(field("ok", 1.0), field("isWritablePrimary", true), field("localTime", time.Now().Add(time.Hour)))
}
