package mongo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// Changes of clients are announced (ADR 0024). A writer inserts the announcement under the next number,
// open; it writes the client; it closes the announcement. So a reader finds what has changed after a
// number, and as long as an announcement is open, it reads that client again and stays before it.
//
// A writer that never closes its announcement would keep readers there, so a reader closes it after
// abandonedAfter. A writer that finds its announcement closed by a reader has been too slow: what it
// wrote is announced once more.

// changeDoc announces a change of a client. Its collection has no index and no validator, so the first
// insert makes it. Numbers have no gaps, except below the oldest. What is there by hand, and is no
// announcement, is at most a gap: all clients are read once.
type changeDoc struct {
	Number int64     `bson:"_id"`
	Nonce  int64     `bson:"nonce"` // random, not 0
	Client string    `bson:"client"`
	Open   bool      `bson:"open,omitempty"` // the client may not have been written yet
	At     time.Time `bson:"at"`             // for people
}

const (
	// keptChanges is how many announcements are kept. An instance that is further behind reads all.
	keptChanges = 10_000
	// trimEvery is after how many changes older ones are removed.
	trimEvery = 100
	// changesPerPage bounds one command that reads.
	changesPerPage = 1000
	// abandonedAfter is after how long a reader closes an announcement. A writer has written by then, or
	// the outcome of its write is known: that takes at most operationTimeout.
	abandonedAfter = 30 * time.Second
)

// changeState is what a store remembers of announcements.
type changeState struct {
	turn chan struct{} // holds a token during a change: those of one process do not compete for numbers

	mu   sync.Mutex
	open map[int64]time.Time // since when an announcement is known to be open
}

func newChangeState() *changeState {
	return &changeState{turn: make(chan struct{}, 1), open: map[int64]time.Time{}}
}

// openFor returns for how long the announcement is known to be open.
func (c *changeState) openFor(number int64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.open[number]
	if !ok {
		since = time.Now()
		c.open[number] = since
	}
	return time.Since(since)
}

func (c *changeState) closed(number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, number)
}

// clientWrite is one change of a client.
type clientWrite struct {
	operation, id string
	check         func(ctx context.Context) error // nil, or returns why it would fail
	write         func(ctx context.Context) error
}

// changeClient announces a change, makes it and closes the announcement. If the write fails with an
// error of [clientcfg.Store], nothing was written; after any other error that is not known, and the
// announcement stays open.
func (s *Store) changeClient(ctx context.Context, w clientWrite) error {
	return s.do(ctx, w.operation, func(ctx context.Context) error {
		select {
		case s.announcing.turn <- struct{}{}:
			defer func() { <-s.announcing.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
		if w.check != nil {
			if err := w.check(ctx); err != nil {
				return err
			}
		}
		began := time.Now().Round(0) // the wall clock: it runs while a machine is suspended
		change, err := s.announce(ctx, w.id, true)
		if err != nil {
			return fmt.Errorf("announce: %w", err)
		}
		switch err = w.write(ctx); {
		case errors.Is(err, clientcfg.ErrExists), errors.Is(err, clientcfg.ErrNotFound), errors.Is(err, clientcfg.ErrConflict):
			_, _ = s.closeChange(ctx, &change) // if it fails, readers do it
			return err
		case err != nil:
			return err
		}
		return s.conclude(context.WithoutCancel(ctx), &change, began)
	})
}

// conclude closes the announcement of a change that was made.
func (s *Store) conclude(ctx context.Context, change *changeDoc, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	ours, err := s.closeChange(ctx, change)
	if err != nil && time.Since(began) < abandonedAfter/2 {
		return nil // readers have not abandoned it, so they read the client as long as it is open
	}
	if err == nil && !ours {
		_, err = s.announce(ctx, change.Client, false)
	}
	if err != nil {
		return fmt.Errorf("it was changed, but instances may take minutes to follow: %w", err)
	}
	if change.Number%trimEvery == 0 {
		old := bson.D{{Key: "_id", Value: bson.D{{Key: "$lte", Value: change.Number - keptChanges}}}}
		_, _ = s.changes.DeleteMany(ctx, old, options.DeleteMany().SetComment(comment(ctx))) // or next time
	}
	return nil
}

// closeChange reports whether the announcement was open.
func (s *Store) closeChange(ctx context.Context, change *changeDoc) (ours bool, err error) {
	open := append(byID(change.Number), bson.E{Key: "nonce", Value: change.Nonce}, bson.E{Key: "open", Value: true})
	result, err := s.changes.UpdateOne(ctx, open, bson.D{{Key: "$unset", Value: bson.D{{Key: "open", Value: ""}}}},
		options.UpdateOne().SetComment(comment(ctx)))
	return err == nil && result.MatchedCount == 1, err
}

// announce inserts an announcement under the next number.
func (s *Store) announce(ctx context.Context, id string, open bool) (change changeDoc, err error) {
	change = changeDoc{Nonce: 1 + rand.Int64(), Client: id, Open: open, At: time.Now().UTC()} //nolint:gosec // no secret
	for {
		last, err := s.change(ctx, numbered(1, maxNumber))
		if err != nil {
			return change, err
		}
		change.Number = last.Number + 1
		_, err = s.changes.InsertOne(ctx, change, options.InsertOne().SetComment(comment(ctx)))
		if !mongo.IsDuplicateKeyError(err) {
			return change, err
		}
		// Another process was faster, or the driver has sent the command twice.
		if taken, err := s.change(ctx, byID(change.Number)); err != nil || taken.Nonce == change.Nonce {
			return change, err
		}
	}
}

// change returns the last announcement that matches; zero if there is none. Of one that cannot be read it
// is the number.
func (s *Store) change(ctx context.Context, filter bson.D) (changeDoc, error) {
	var stored storedChange
	err := s.changes.FindOne(ctx, filter, options.FindOne().SetSort(byID(-1)).SetComment(comment(ctx))).Decode(&stored)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return changeDoc{}, nil
	}
	return stored.change(), err
}

// lastMark returns the mark before the first open announcement, or that of the last one.
func (s *Store) lastMark(ctx context.Context) (mark clientcfg.Mark, err error) {
	last, err := s.change(ctx, numbered(1, maxNumber))
	if err != nil {
		return mark, err
	}
	// Those up to it that are closed now stay closed. One that comes later is after the mark.
	filter := append(numbered(1, last.Number), bson.E{Key: "open", Value: true})
	stored, err := findAll[storedChange](ctx, s.changes, filter, options.Find().SetSort(byID(1)).SetLimit(changesPerPage))
	if err != nil {
		return mark, err
	}
	open := changesOf(stored)
	open = slices.DeleteFunc(open, func(c changeDoc) bool { return c.unreadable() }) // it is never closed
	if len(open) == 0 {
		return clientcfg.Mark{Number: last.Number, Nonce: last.Nonce}, nil
	}
	first := open[0].Number
	before, err := s.change(ctx, byID(first-1))
	return clientcfg.Mark{Number: first - 1, Nonce: before.Nonce}, err
}

// ClientChanges implements [clientcfg.Store].
func (s *Store) ClientChanges(ctx context.Context, since clientcfg.Mark, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	next, last, waiting := since, since, false
	for {
		page, more, err := s.changesAfter(ctx, last)
		if err != nil {
			return since, err
		}
		for i := range page {
			c := &page[i]
			last = clientcfg.Mark{Number: c.Number, Nonce: c.Nonce}
			if open := s.stillOpen(ctx, c); open || waiting { // asked of each: all wait at the same time
				waiting = true
			} else {
				next = last
			}
		}
		// Only now, so that what is closed has been written.
		if err := s.readChanged(ctx, page, each); err != nil {
			return since, err
		}
		if !more {
			return next, nil
		}
	}
}

// changesAfter returns the next announcements after a mark, and whether there may be more. It reads that
// of the mark, too: if it is another one or not there, or the next one is missing or cannot be read, the
// history is not the one that the mark is of, or not known.
func (s *Store) changesAfter(ctx context.Context, mark clientcfg.Mark) (page []changeDoc, more bool, err error) {
	var stored []storedChange
	err = s.do(ctx, "read client changes", func(ctx context.Context) (err error) {
		stored, err = findAll[storedChange](ctx, s.changes, numbered(mark.Number, maxNumber),
			options.Find().SetSort(byID(1)).SetLimit(changesPerPage+1))
		return err
	})
	if err != nil {
		return nil, false, err
	}
	page = changesOf(stored)
	if len(page) > 0 && page[0].Number == mark.Number {
		if mark.Nonce != 0 && page[0].Nonce != mark.Nonce {
			return nil, false, s.markLost(ctx)
		}
		page = page[1:]
	} else if mark.Nonce != 0 {
		return nil, false, s.markLost(ctx)
	}
	for i := range page {
		switch {
		case page[i].Number == mark.Number+1+int64(i) && !page[i].unreadable():
		case i == 0:
			return nil, false, s.markLost(ctx)
		default: // those before the gap first: there may be open ones, which have to be closed some time
			return page[:i], true, nil
		}
	}
	return page, len(stored) > changesPerPage, nil
}

// stillOpen reports whether the client may be written yet without another announcement. One that is
// open for too long is closed.
func (s *Store) stillOpen(ctx context.Context, c *changeDoc) bool {
	if c.Open && s.announcing.openFor(c.Number) < abandonedAfter {
		return true
	}
	if c.Open {
		err := s.do(ctx, "close abandoned change", func(ctx context.Context) error {
			_, err := s.closeChange(ctx, c)
			return err
		})
		if err != nil {
			return true
		}
	}
	s.announcing.closed(c.Number)
	return false
}

// readChanged reads the clients that the announcements are of.
func (s *Store) readChanged(ctx context.Context, page []changeDoc, each func(clientcfg.Record)) error {
	missing := map[string]bool{}
	for i := range page {
		missing[page[i].Client] = true
	}
	if len(missing) == 0 {
		return nil
	}
	ids := make(bson.A, 0, len(missing))
	for id := range missing {
		ids = append(ids, id)
	}
	err := s.eachClient(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, func(r clientcfg.Record) {
		delete(missing, r.ID)
		each(r)
	})
	if err != nil {
		return err
	}
	for id := range missing {
		each(clientcfg.Record{ID: id, Gone: true})
	}
	return nil
}
