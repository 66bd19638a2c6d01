package mongo

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// strays are documents that an editor may have put into a collection whose _ids are whole numbers. They
// sort before and after all numbers, and among them.
func strays() []bson.D {
	note := bson.E{Key: "note", Value: "by hand"}
	at, old := bson.E{Key: "at", Value: time.Now()}, bson.E{Key: "at", Value: time.Unix(0, 0)}
	return []bson.D{
		{note}, // with an ObjectId
		{{Key: "_id", Value: bson.NewObjectID()}, at, {Key: "open", Value: true}},
		{{Key: "_id", Value: nil}, old, {Key: "open", Value: true}},
		{{Key: "_id", Value: "3"}, note, old},
		{{Key: "_id", Value: bson.D{{Key: "n", Value: 3}}}, note},
		{{Key: "_id", Value: true}, at},
		{{Key: "_id", Value: time.Now()}, at},
		{{Key: "_id", Value: -1}, note, at, {Key: "open", Value: true}},
		{{Key: "_id", Value: 2.5}, note},
		{{Key: "_id", Value: 1e18 * 100}, note, at},
	}
}

func putStrays(t *testing.T, s *Store, collection string) {
	t.Helper()
	for _, doc := range strays() {
		_, err := s.db.Collection(collection).InsertOne(t.Context(), doc, options.InsertOne().SetBypassDocumentValidation(true))
		check.OK(t, err)
	}
}

// readings counts how often all clients are read.
type readings struct {
	clientcfg.Store
	all int
}

func (r *readings) Clients(ctx context.Context, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	r.all++
	return r.Store.Clients(ctx, each)
}

func sourceOf(t *testing.T, s *Store) (*clientcfg.Source, *readings) {
	t.Helper()
	counted := &readings{Store: s}
	source, err := clientcfg.NewSource(t.Context(), counted, nil)
	check.OK(t, err)
	return source, counted
}

// sees checks that the source finds the clients, having read all so often.
func sees(t *testing.T, what string, source *clientcfg.Source, counted *readings, all int, ids ...string) {
	t.Helper()
	check.OK(t, source.Refresh(t.Context()))
	_, known := source.Client(ids[len(ids)-1])
	check.Equal(t, what+": sees the newest", known, true)
	check.Equal(t, what+": how many", source.Directory().Len(), len(ids))
	check.Equal(t, what+": all were read", counted.all, all)
}

func registerPublic(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		c := clientcfg.Client{ID: id, Public: true, Grants: []clientcfg.Grant{clientcfg.Password}}
		check.OK(t, s.CreateClient(t.Context(), c))
	}
}

// TestDamagedAnnouncement: it takes only itself out. One that runs reads all clients once, unless it is
// not concerned; one that starts, starts; and clients are changed and followed.
func TestDamagedAnnouncement(t *testing.T) {
	t.Parallel()
	set := func(field string, value any) func(number int64) bson.D {
		return func(int64) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}} }
	}
	for name, tt := range map[string]struct {
		update func(number int64) bson.D
		all    int
	}{
		"at is a text":       {set("at", "yesterday"), 0},
		"open is a text":     {set("open", "no"), 1},
		"open is null":       {set("open", nil), 1},
		"client is a number": {set("client", 7), 1},
		"nonce is a text":    {set("nonce", "x"), 1},
		"nonce is missing":   {func(int64) bson.D { return bson.D{{Key: "$unset", Value: bson.D{{Key: "nonce", Value: ""}}}} }, 1},
		"open, of no client": {func(int64) bson.D {
			return bson.D{{Key: "$set", Value: bson.D{{Key: "open", Value: true}}}, {Key: "$unset", Value: bson.D{{Key: "client", Value: ""}}}}
		}, 1},
	} {
		for _, number := range []int64{2, 3} { // one in between, and the newest
			t.Run(fmt.Sprintf("%s, number %d", name, number), func(t *testing.T) {
				t.Parallel()
				writer, reader := twoStores(t)
				registerPublic(t, writer, "a")
				follows, counted := sourceOf(t, reader)
				registerPublic(t, writer, "b", "c")
				_, err := writer.changes.UpdateByID(t.Context(), number, tt.update(number))
				check.OK(t, err)
				sees(t, "one that runs", follows, counted, 1+tt.all, "a", "b", "c")
				starts, restarted := sourceOf(t, reader)
				sees(t, "one that starts", starts, restarted, 1, "a", "b", "c")
				registerPublic(t, writer, "d")
				sees(t, "one that runs, later", follows, counted, 1+tt.all, "a", "b", "c", "d")
				sees(t, "one that starts, later", starts, restarted, 1, "a", "b", "c", "d")
			})
		}
	}
}

// TestStraysAmongAnnouncements: what is no announcement at all is passed over.
func TestStraysAmongAnnouncements(t *testing.T) {
	t.Parallel()
	writer, reader := twoStores(t)
	registerPublic(t, writer, "a", "b")
	follows, counted := sourceOf(t, reader)
	putStrays(t, writer, "clientChanges")
	registerPublic(t, writer, "c", "d")
	sees(t, "one that runs", follows, counted, 1, "a", "b", "c", "d")
	starts, restarted := sourceOf(t, reader)
	registerPublic(t, writer, "e")
	sees(t, "one that runs, later", follows, counted, 1, "a", "b", "c", "d", "e")
	sees(t, "one that starts", starts, restarted, 1, "a", "b", "c", "d", "e")
}

// TestDamagedAnnouncementAfterAnOpenOne: the open one is closed some time, so that not all clients are
// read for ever.
func TestDamagedAnnouncementAfterAnOpenOne(t *testing.T) {
	t.Parallel()
	writer, reader := twoStores(t)
	registerPublic(t, writer, "a", "b", "c", "d")
	follows, counted := sourceOf(t, reader)
	_, err := writer.changes.UpdateByID(t.Context(), 2, bson.D{{Key: "$set", Value: bson.D{{Key: "open", Value: true}}}})
	check.OK(t, err)
	_, err = writer.changes.UpdateByID(t.Context(), 3, bson.D{{Key: "$set", Value: bson.D{{Key: "client", Value: 7}}}})
	check.OK(t, err)
	starts, restarted := sourceOf(t, reader)
	sees(t, "one that starts", starts, restarted, 2, "a", "b", "c", "d")
	giveUp(reader)
	sees(t, "when it is abandoned", starts, restarted, 3, "a", "b", "c", "d")
	sees(t, "afterwards", starts, restarted, 3, "a", "b", "c", "d")
	sees(t, "one that ran", follows, counted, 1, "a", "b", "c", "d")
}

// TestStraysInTheTrail: no change is refused for them, nothing else is unreadable, and the sweep removes what is old.
func TestStraysInTheTrail(t *testing.T) {
	for _, before := range []int{0, 5} { // entries that are there before them
		_, s, _ := throughProxy(t)
		changeTo(t, s, int64(before))
		runs, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
		check.OK(t, err)
		putStrays(t, s, "audit")
		check.OK(t, runs.Refresh(t.Context()))
		changeTo(t, s, 6)
		starts, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
		check.OK(t, err)
		for _, p := range []*clientcfg.PolicySource{runs, starts} {
			check.OK(t, p.Refresh(t.Context()))
			check.Equal(t, "version", p.Snapshot().Version(), 6)
			check.Equal(t, "status", p.Status().Err, nil)
		}
		entries, err := s.Audit(t.Context(), clientcfg.AuditQuery{})
		check.OK(t, err)
		readable := 0
		for i := range entries {
			if entries[i].Err == nil {
				readable++
			}
		}
		check.Equal(t, "readable entries", readable, 6)
		_, err = s.SweepAudit(t.Context(), time.Now().Add(time.Hour), time.Now().Add(time.Hour))
		check.OK(t, err)
		changeTo(t, s, 7)
		check.OK(t, starts.Refresh(t.Context()))
		check.Equal(t, "version after the sweep", starts.Snapshot().Version(), 7)
	}
}

// TestDamagedMarker: it says which document of the database is meant, and what is wrong with it.
func TestDamagedMarker(t *testing.T) {
	for _, set := range []bson.E{{Key: "folded", Value: "seven"}, {Key: "version", Value: "x"}} {
		_, s, _ := throughProxy(t)
		changeTo(t, s, 3)
		setFields(t, s, "policies", "current", bson.D{set})
		_, err := s.PolicyState(t.Context())
		check.ErrorSays(t, err, set.Key+" is of type string")
		check.ErrorSays(t, err, `in the document "current" of the collection policies`)
	}
}
