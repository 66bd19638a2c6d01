package mongo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// CheckStatus is the outcome of one [Check].
type CheckStatus string

// The outcomes: the server does what is relied on, does not offer it, or does something else; or
// the check could not be made, because of what failed before.
const (
	CheckOK        CheckStatus = "ok"
	CheckMissing   CheckStatus = "missing"
	CheckFailed    CheckStatus = "failed"
	CheckUnchecked CheckStatus = "unchecked"
)

// Check is one property of the server that is relied on, by its number in
// docs/operating-mongodb.md, and whether the server has it.
type Check struct {
	Number  int         `json:"number"`
	Name    string      `json:"check"`
	Status  CheckStatus `json:"status"`
	Exact   bool        `json:"exact"`             // exact counts rest on it
	Detail  string      `json:"detail,omitempty"`  // what was measured, or found instead
	Follows string      `json:"follows,omitempty"` // what follows if it is missing or failed
}

// Verification is what [Store.Verify] found, in the order of the numbers.
type Verification struct {
	Checks []Check `json:"checks"`
}

// Inexact returns the checks that exact counts rest on and that are not ok.
func (v Verification) Inexact() (failed []Check) {
	for _, c := range v.Checks {
		if c.Exact && c.Status != CheckOK {
			failed = append(failed, c)
		}
	}
	return failed
}

// VerifyOptions are the options of [Store.Verify].
type VerifyOptions struct {
	// WaitTTL is how long the server gets to delete an expired document; 0 checks only that it
	// keeps the index.
	WaitTTL time.Duration
	// Waiting is called when that begins, and about every ten seconds of it. May be nil.
	Waiting func(elapsed time.Duration)
}

// cleanUpTimeout bounds the removal of what the checks have written.
const cleanUpTimeout = 5 * time.Second

// Verify runs all checks in a scratch collection, which the first write creates, and drops it at
// the end, also when ctx ends. It returns an error if the checks ended early or the collection may
// be left, and beside it what was found until then.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Verification, error) {
	name, err := randomName("verify_scratch_")
	if err != nil {
		return Verification{}, fmt.Errorf("mongo: verify: %w", err)
	}
	v := newVerifier(s, s.db.Collection(name), true)
	return v.verify(ctx, func(ctx context.Context) error { return v.all(ctx, o) }, v.drop)
}

// VerifyCounters runs the checks of the writes and reads of counters, in a few round trips. It
// needs the rights of serving only: it writes a few documents beside the counters, under a client
// ID that no client can have, and deletes them. If the process dies in between, the TTL index does.
// Results and errors are as those of [Store.Verify].
func (s *Store) VerifyCounters(ctx context.Context) (Verification, error) {
	v := newVerifier(s, s.counters, false)
	return v.verify(ctx, v.counters, v.clear)
}

// verifier collects what the checks find.
type verifier struct {
	store   *Store
	coll    *mongo.Collection
	alone   bool   // the whole collection is scratch, without validators
	client  string // client ID of the scratch documents
	expire  time.Time
	ids     []bson.D // of the scratch documents
	initial []string // names of those that prepare has inserted; nil until then

	documents map[string]bson.Raw // as they were after the probes, by name

	mu      sync.Mutex
	current int // number of the check that began last
	checked map[int]*Check
}

func newVerifier(s *Store, c *mongo.Collection, alone bool) *verifier {
	client, err := randomName("verify scratch ") // a space: no client ID has one
	if err != nil {
		client = "verify scratch"
	}
	return &verifier{
		store: s, coll: c, alone: alone, client: client,
		expire: time.Now().Add(24 * time.Hour).Truncate(time.Millisecond), checked: map[int]*Check{},
	}
}

// verify runs the checks, then cleans up. What was found is returned whatever error or panic ends
// either.
func (v *verifier) verify(ctx context.Context, checks, cleanUp func(context.Context) error) (Verification, error) {
	ctx = withOperation(ctx, "verify")
	err := guarded("verify", func() error { return checks(ctx) })
	if err != nil {
		v.undecided()
	}
	return v.report(), errors.Join(err, guarded("verify", func() error { return cleanUp(ctx) }))
}

func randomName(prefix string) (string, error) {
	random := make([]byte, 12)
	_, err := rand.Read(random)
	return prefix + hex.EncodeToString(random), err
}

// check begins a check, which is ok until something else is found.
func (v *verifier) check(number int) {
	v.find(number, CheckOK, "")
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = number
}

// find notes what a check has found. The first finding that is not ok stays.
func (v *verifier) find(number int, status CheckStatus, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.checked[number]
	if c == nil {
		c = &Check{Number: number, Status: CheckOK}
		v.checked[number] = c
	}
	if c.Status == CheckOK && format != "" {
		c.Status, c.Detail = status, fmt.Sprintf(format, args...)
	}
}

// undecided forgets the check that an error has interrupted, if it has found nothing yet.
func (v *verifier) undecided() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.checked[v.current]; c != nil && c.Status == CheckOK {
		delete(v.checked, v.current)
	}
}

// ok reports whether a check has found nothing wrong so far.
func (v *verifier) ok(number int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.checked[number].Status == CheckOK
}

// fail notes that the server does something else.
func (v *verifier) fail(number int, format string, args ...any) {
	v.find(number, CheckFailed, format, args...)
}

// run runs one step of the checks. If the server does not answer it, or closes the connection, and
// answers a ping right afterwards, the current check has failed. The error is one that ends all
// checks: the server is away, or a command was not sent, which says nothing about the server.
//
// In a scratch collection a step that has begun runs to its end, also when ctx ends: a write that was
// abandoned could arrive after the collection is dropped, and create it again.
func (v *verifier) run(ctx context.Context, step func(context.Context) error) error {
	stepping := ctx
	if v.alone {
		stepping = context.WithoutCancel(ctx)
	}
	err := v.attempt(stepping, step)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if err == nil || isAnswer(err) || isUnsent(err) || v.store.Ping(ctx) != nil {
		return err
	}
	v.fail(v.current, "no answer: %v", err)
	return nil
}

// attempt runs a step within the timeout of one operation. A panic becomes an error: the driver
// does not check the indexes in a reply.
func (v *verifier) attempt(ctx context.Context, step func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, v.store.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the driver cannot read a reply: panic: %v", p)
		}
	}()
	return step(ctx)
}

// refused notes the answer of a server that refused a command. It returns every other error.
func (v *verifier) refused(number int, status CheckStatus, err error) error {
	if err == nil || !isAnswer(err) {
		return err
	}
	v.find(number, status, "%v", err)
	return nil
}

// isAnswer reports whether the error is the server's answer, and not one of the connection.
func isAnswer(err error) bool {
	var answer mongo.ServerError
	return errors.As(err, &answer) && !mongo.IsNetworkError(err) && !mongo.IsTimeout(err) && !isUnsent(err)
}

// isUnsent reports whether the command got no connection, because another command had failed and the
// driver closed all. That is no answer, although the driver gives it the type of one.
func isUnsent(err error) bool {
	var cleared driver.RetryablePoolError
	return errors.As(err, &cleared)
}

// report lists the checks by their numbers.
func (v *verifier) report() (r Verification) {
	for _, c := range relied {
		found := v.checked[c.Number]
		switch {
		case found == nil && !v.alone && !slices.Contains(shortForm, c.Number):
			continue
		case found == nil:
			found = &Check{Number: c.Number, Status: CheckUnchecked, Detail: "not checked, because of what failed before"}
		}
		found.Name, found.Exact = c.Name, c.Exact
		if found.Status == CheckMissing || found.Status == CheckFailed {
			found.Follows = c.Follows
		}
		r.Checks = append(r.Checks, *found)
	}
	return r
}

// id returns the _id of a scratch document, which is removed at the end.
func (v *verifier) id(name string) bson.D {
	id := fields(field("clientId", v.client), field("username", name))
	v.ids = append(v.ids, id)
	return id
}

// byPrimary returns the collection with writes that the primary alone acknowledges.
func (v *verifier) byPrimary() *mongo.Collection {
	return v.coll.Clone(options.Collection().SetWriteConcern(writeconcern.W1()))
}

// drop removes the scratch collection, also after ctx has ended.
func (v *verifier) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	if err := v.unacknowledged(v.byPrimary().Drop(ctx)); err != nil {
		return fmt.Errorf("remove the scratch collection %s: %w", v.coll.Name(), err)
	}
	return nil
}

// clear removes the scratch documents, also after ctx has ended.
func (v *verifier) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	_, err := v.byPrimary().DeleteMany(ctx, byID(field("$in", v.ids)), options.DeleteMany().SetComment(comment(ctx)))
	if err = v.unacknowledged(err); err != nil {
		return fmt.Errorf("remove the scratch documents: %w", err)
	}
	return nil
}

// read returns scratch documents by name, as the server sent them.
func (v *verifier) read(ctx context.Context, filter bson.D) (map[string]bson.Raw, error) {
	docs, err := findAll[bson.Raw](ctx, v.coll, filter, options.Find().SetBatchSize(int32(len(v.ids)+1))) //nolint:gosec // a few dozen
	if err != nil {
		return nil, err
	}
	byName := make(map[string]bson.Raw, len(docs))
	for _, doc := range docs {
		byName[documentName(doc.Lookup("_id"))] = doc
	}
	return byName, nil
}

// documentName returns the name of a scratch document. One whose _id has its fields in the other
// order has another name.
func documentName(id bson.RawValue) string {
	doc, ok := id.DocumentOK()
	if !ok {
		return ""
	}
	name, _ := doc.Lookup("username").StringValueOK()
	if first, err := doc.IndexErr(0); err == nil && first.Key() == "username" {
		name += swappedSuffix
	}
	return name
}

// swappedSuffix marks the name of an _id whose fields are swapped.
const swappedSuffix = ", swapped"

// field returns a document of one field.
func field(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }

// fields returns one document of the fields of all.
func fields(all ...bson.D) bson.D { return slices.Concat(all...) }
