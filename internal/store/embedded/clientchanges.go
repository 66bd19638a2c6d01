package embedded

import (
	"context"
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
)

// keptChanges is how many changes of clients can be followed.
const keptChanges = 10_000

// changeLog has the IDs of the clients that were changed, by revision. It is in memory only: no other
// process changes the file while this one has it open, and a mark does not outlive the process.
type changeLog struct {
	mu  sync.Mutex
	ids map[int64][]string
}

// note is called before the change is committed. If it never is, another one may get the revision: then
// both are noted.
func (l *changeLog) note(revision int64, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil {
		l.ids = map[int64][]string{}
	}
	l.ids[revision] = append(l.ids[revision], id)
	delete(l.ids, revision-keptChanges)
}

// between returns the clients that were changed after one revision and until another; false if that is
// not known.
func (l *changeLog) between(after, until int64) (ids []string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after > until || until-after > keptChanges {
		return nil, false
	}
	for n := after + 1; n <= until; n++ {
		changed, ok := l.ids[n]
		if !ok {
			return nil, false
		}
		ids = append(ids, changed...)
	}
	return ids, true
}

// ClientChanges implements [clientcfg.Store].
func (s *Store) ClientChanges(ctx context.Context, since clientcfg.Mark, each func(clientcfg.Record)) (mark clientcfg.Mark, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		if mark, err = readMark(tx); err != nil {
			return err
		}
		ids, ok := s.changed.between(since.Number, mark.Number)
		if !ok {
			return fmt.Errorf("%w: %d to %d", clientcfg.ErrMarkLost, since.Number, mark.Number)
		}
		for _, id := range ids {
			if value := get(tx, clients, []byte(id)); value != nil {
				each(readClient([]byte(id), value))
			} else {
				each(clientcfg.Record{ID: id, Gone: true})
			}
		}
		return nil
	})
	if err != nil {
		return clientcfg.Mark{}, err
	}
	return mark, nil
}

// ClientsSum implements [clientcfg.Store].
func (s *Store) ClientsSum(context.Context) (clientcfg.Sum, error) {
	return clientcfg.Sum{}, clientcfg.ErrNoSum
}

func readClient(id, value []byte) clientcfg.Record {
	c, err := decodeClient(id, value)
	return clientcfg.Record{ID: string(id), Client: c, Err: err}
}
