package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store/mongo/mongotest"
)

// followed reads the changes since a mark, which it moves, and returns what was read: "id" or "id gone".
func followed(t *testing.T, s *Store, mark *clientcfg.Mark) (seen []string) {
	t.Helper()
	next, err := s.ClientChanges(t.Context(), *mark, func(r clientcfg.Record) {
		if r.Gone {
			r.ID += " gone"
		}
		seen = append(seen, r.ID)
	})
	check.OK(t, err)
	*mark = next
	slices.Sort(seen)
	return seen
}

func register(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		check.OK(t, s.CreateClient(t.Context(), clientcfg.Client{ID: id}))
	}
}

// twoStores are two processes on one database: a writer that gets into trouble, and a reader.
func twoStores(t *testing.T) (writer, reader *Store) {
	t.Helper()
	uri, database, _ := strings.Cut(target.Location(t), " ")
	return openAt(t, uri, database), openAt(t, uri, database)
}

// giveUp makes the reader take every open announcement for abandoned.
func giveUp(s *Store) {
	s.announcing.mu.Lock()
	defer s.announcing.mu.Unlock()
	for number := range s.announcing.open {
		s.announcing.open[number] = time.Now().Add(-abandonedAfter)
	}
}

// TestWriterThatFreezes: a writer stops after its announcement, while others change clients. Readers see
// those at once, and its client when it is written.
func TestWriterThatFreezes(t *testing.T) {
	t.Parallel()
	writer, reader := twoStores(t)
	mark := clientcfg.Mark{}
	err := writer.changeClient(t.Context(), clientWrite{operation: "freeze", id: "slow", write: func(ctx context.Context) error {
		register(t, reader, "a", "b")
		for range 2 {
			check.Equal(t, "read meanwhile", followed(t, reader, &mark), []string{"a", "b", "slow gone"})
			check.Equal(t, "mark", mark, clientcfg.Mark{})
		}
		all, err := reader.Clients(ctx, func(clientcfg.Record) {})
		check.OK(t, err)
		check.Equal(t, "mark of one that reads all", all, clientcfg.Mark{})
		_, err = writer.clients.InsertOne(ctx, newClientDoc(&clientcfg.Client{ID: "slow"}, 1))
		return err
	}})
	check.OK(t, err)
	check.Equal(t, "read afterwards", followed(t, reader, &mark), []string{"a", "b", "slow"})
	check.Equal(t, "mark", mark.Number, 3)
	check.Equal(t, "read again", followed(t, reader, &mark), nil)
}

// TestWriterThatFreezesForLong: a reader takes it for dead. What it writes then is announced once more.
func TestWriterThatFreezesForLong(t *testing.T) {
	t.Parallel()
	writer, reader := twoStores(t)
	mark := clientcfg.Mark{}
	err := writer.changeClient(t.Context(), clientWrite{operation: "freeze", id: "slow", write: func(ctx context.Context) error {
		check.Equal(t, "read meanwhile", followed(t, reader, &mark), []string{"slow gone"})
		giveUp(reader)
		check.Equal(t, "read at last", followed(t, reader, &mark), []string{"slow gone"})
		check.Equal(t, "mark", mark.Number, 1)
		check.Equal(t, "read when it is abandoned", followed(t, reader, &mark), nil)
		_, err := writer.clients.InsertOne(ctx, newClientDoc(&clientcfg.Client{ID: "slow"}, 1))
		return err
	}})
	check.OK(t, err)
	check.Equal(t, "read afterwards", followed(t, reader, &mark), []string{"slow"})
	check.Equal(t, "mark", mark.Number, 2)
}

// TestWriterThatDies: before or after it has written the client. Readers see what is there at once, and
// are not kept for long.
func TestWriterThatDies(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		t.Run(fmt.Sprint("written ", written), func(t *testing.T) {
			writer, reader := twoStores(t)
			mark, dead := clientcfg.Mark{}, errors.New("killed")
			err := writer.changeClient(t.Context(), clientWrite{operation: "die", id: "c", write: func(ctx context.Context) error {
				if written {
					_, err := writer.clients.InsertOne(ctx, newClientDoc(&clientcfg.Client{ID: "c"}, 1))
					check.OK(t, err)
				}
				return dead
			}})
			check.Equal(t, "it died", errors.Is(err, dead), true)
			want := map[bool]string{false: "c gone", true: "c"}[written]
			check.Equal(t, "read", followed(t, reader, &mark), []string{want})
			check.Equal(t, "mark", mark.Number, 0)
			giveUp(reader)
			check.Equal(t, "read", followed(t, reader, &mark), []string{want})
			check.Equal(t, "mark", mark.Number, 1)
			check.Equal(t, "read again", followed(t, reader, &mark), nil)
			check.Equal(t, "remembered", len(reader.announcing.open), 0)
		})
	}
}

// TestWritersThatDieTogether: readers wait for all of them at the same time.
func TestWritersThatDieTogether(t *testing.T) {
	t.Parallel()
	writer, reader := twoStores(t)
	mark, dead := clientcfg.Mark{}, errors.New("killed")
	for _, id := range []string{"a", "b", "c"} {
		err := writer.changeClient(t.Context(), clientWrite{operation: "die", id: id, write: func(context.Context) error { return dead }})
		check.Equal(t, "it died", errors.Is(err, dead), true)
	}
	followed(t, reader, &mark)
	check.Equal(t, "mark", mark.Number, 0)
	giveUp(reader)
	followed(t, reader, &mark)
	check.Equal(t, "mark", mark.Number, 3)
}

// TestChangesLostOnTheWay: whichever command of a change is lost, or its reply, readers see what is
// stored, and a change that follows is seen too.
func TestChangesLostOnTheWay(t *testing.T) {
	t.Parallel()
	for nth := range 4 {
		for _, fault := range []mongotest.Fault{mongotest.LoseRequest, mongotest.LoseReply} {
			t.Run(fmt.Sprintf("command %d, fault %v", nth+1, fault), func(t *testing.T) {
				t.Parallel()
				s, reader, proxy := throughProxy(t)
				mark, sent := clientcfg.Mark{}, 0
				check.OK(t, s.Ping(t.Context()))
				proxy.Decide(func(command string) mongotest.Fault { // called with the lock held
					if command != "find" && command != "insert" && command != "update" {
						return mongotest.Pass
					}
					if sent++; sent == nth+1 {
						return fault
					}
					return mongotest.Pass
				})
				created := s.CreateClient(t.Context(), clientcfg.Client{ID: "c"})
				proxy.Decide(nil)
				seen := followed(t, reader, &mark)
				_, err := reader.Client(t.Context(), "c")
				if stored := err == nil; stored != slices.Contains(seen, "c") || created == nil && !stored {
					t.Errorf("created %v, read %v, seen %v", created, err, seen)
				}
				register(t, s, "d")
				check.Equal(t, "the next change is seen", slices.Contains(followed(t, reader, &mark), "d"), true)
				giveUp(reader)
				followed(t, reader, &mark)
				check.Equal(t, "read again", followed(t, reader, &mark), nil)
			})
		}
	}
}

// TestMarksThatAreLost: a reader that was away for too long, and a database that was restored.
func TestMarksThatAreLost(t *testing.T) {
	t.Parallel()
	s, _ := twoStores(t)
	register(t, s, "a", "b", "c", "d")
	mark := clientcfg.Mark{}
	followed(t, s, &mark)
	lost := func(what string, m clientcfg.Mark) {
		t.Helper()
		if _, err := s.ClientChanges(t.Context(), m, func(clientcfg.Record) {}); !errors.Is(err, clientcfg.ErrMarkLost) {
			t.Errorf("%s: %v, want ErrMarkLost", what, err)
		}
	}
	lost("another history", clientcfg.Mark{Number: mark.Number, Nonce: mark.Nonce + 1})
	lost("ahead", clientcfg.Mark{Number: mark.Number + 1, Nonce: 1})
	_, err := s.changes.DeleteMany(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$lte", Value: 2}}}})
	check.OK(t, err)
	lost("away", clientcfg.Mark{})
	lost("away, later", clientcfg.Mark{Number: 1, Nonce: 1})
	check.Equal(t, "read by one that follows", followed(t, s, &mark), nil)
	_, err = s.changes.DeleteMany(t.Context(), bson.D{})
	check.OK(t, err)
	lost("nothing is left", mark)
}

// TestManyChangesAtOnce: more than fit into one command, some of them open.
func TestManyChangesAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := twoStores(t)
	docs := make([]any, 0, 2*changesPerPage+500)
	for i := range cap(docs) {
		docs = append(docs, changeDoc{Number: int64(i + 1), Nonce: int64(i + 1), Client: fmt.Sprint(i), Open: i == 1500})
	}
	_, err := s.changes.InsertMany(t.Context(), docs)
	check.OK(t, err)
	mark := clientcfg.Mark{}
	check.Equal(t, "read", len(followed(t, s, &mark)), len(docs))
	check.Equal(t, "mark", mark.Number, 1500)
	check.Equal(t, "read again", len(followed(t, s, &mark)), len(docs)-1500)
	giveUp(s)
	check.Equal(t, "read at last", len(followed(t, s, &mark)), len(docs)-1500)
	check.Equal(t, "mark", mark.Number, int64(len(docs)))
}

// TestOldChangesAreRemoved: the collection does not grow with the past.
func TestOldChangesAreRemoved(t *testing.T) {
	t.Parallel()
	s, _ := twoStores(t)
	_, err := s.changes.InsertMany(t.Context(), []any{
		changeDoc{Number: 1, Nonce: 1, Client: "old"}, changeDoc{Number: 2*keptChanges - 1, Nonce: 1, Client: "new"},
	})
	check.OK(t, err)
	register(t, s, "c")
	n, err := s.changes.CountDocuments(t.Context(), bson.D{})
	check.OK(t, err)
	check.Equal(t, "announcements", n, 2)
}
