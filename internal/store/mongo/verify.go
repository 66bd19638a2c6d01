package mongo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
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

// finding is an error that is the outcome of a probe.
type finding struct {
	status CheckStatus
	detail string
}

// Error implements error.
func (f finding) Error() string { return f.detail }

func found(status CheckStatus, format string, args ...any) error {
	return finding{status, fmt.Sprintf(format, args...)}
}

func differs(format string, args ...any) error { return found(CheckFailed, format, args...) }

// property is one property of the server that is relied on, and the probe that looks for it.
type property struct {
	level   level
	name    string
	follows string // if the server does not have it
	probe   func(v *verifier, ctx context.Context) error
}

// level is how much rests on a property.
type level int

const (
	convenience level = iota
	exact             // counts, or claims
	atStart           // the same, and a server checks it when it starts
)

// verifier runs probes. All of them write and read with the concern majority.
type verifier struct {
	store       *Store
	options     VerifyOptions
	scratch     string // a collection that is only for the probes; empty: at the start of a server
	client      string // of the counters: no client ID has a space
	expire      time.Time
	ids         []bson.D        // of the counters
	interrupted <-chan struct{} // ends a wait
}

// Verify runs all checks in a scratch collection, and drops it at the end, also when ctx ends. It
// returns an error if the checks ended early or the collection may be left, and beside it what was found
// until then.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Verification, error) {
	return s.verify(ctx, o, "verify_scratch_"+rand.Text())
}

// VerifyCounters runs the checks of the writes and reads of counters. It needs the rights of serving
// only: it writes a few counters of a client ID that no client can have, and deletes them. If the
// process dies in between, the TTL index does. Results and errors are as those of [Store.Verify].
func (s *Store) VerifyCounters(ctx context.Context) (Verification, error) {
	return s.verify(ctx, VerifyOptions{}, "")
}

func (s *Store) verify(ctx context.Context, o VerifyOptions, scratch string) (all Verification, err error) {
	own := *s
	if scratch != "" {
		own.counters = s.db.Collection(scratch)
	}
	v := &verifier{
		store: &own, options: o, scratch: scratch, client: "verify scratch " + rand.Text(),
		expire: time.Now().Add(24 * time.Hour).Truncate(time.Millisecond), interrupted: ctx.Done(),
	}
	ctx = withOperation(ctx, "verify")
	for i, p := range relied {
		if scratch == "" && p.level != atStart {
			continue
		}
		c := Check{Number: i + 1, Name: p.name, Exact: p.level != convenience, Status: CheckUnchecked, Detail: "not checked, because of what failed before"}
		if err == nil {
			err = v.check(ctx, &c, p)
		}
		all.Checks = append(all.Checks, c)
	}
	return all, errors.Join(err, guarded("verify", func() error { return v.cleanUp(ctx) }))
}

// check runs one probe. The error is one that ends all checks: the server is away, or a right is missing.
// A probe runs to its end, also when ctx ends: a write that was abandoned could arrive after the scratch
// collection is dropped, and create it again.
func (v *verifier) check(ctx context.Context, c *Check, p property) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*v.store.timeout+v.options.WaitTTL)
	defer cancel()
	err := guarded("verify", func() error { return p.probe(v, bounded) })
	f := finding{CheckOK, ""}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil, errors.As(err, &f):
	case isAway(err), c.Exact && hasCode(err, unauthorized):
		return err
	case c.Exact:
		f = finding{CheckFailed, err.Error()}
	default:
		f = finding{CheckMissing, err.Error()}
	}
	if c.Status, c.Detail = f.status, f.detail; f.status != CheckOK {
		c.Follows = p.follows
	}
	return nil
}

// isAway reports whether a server did not answer, or was not asked: a command gets no connection if another one
// has failed and the driver closed all.
func isAway(err error) bool {
	var unsent driver.RetryablePoolError
	var selection topology.ServerSelectionError
	return mongo.IsNetworkError(err) || mongo.IsTimeout(err) || errors.As(err, &unsent) || errors.As(err, &selection)
}

// cleanUp removes what the probes have written, also after ctx has ended or if no majority acknowledges.
func (v *verifier) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
	defer cancel()
	db := v.store.client.Database(v.store.db.Name(), options.Database().SetWriteConcern(writeconcern.W1()))
	if v.scratch == "" {
		_, err := db.Collection(v.store.counters.Name()).DeleteMany(ctx, byID(field("$in", v.ids)), options.DeleteMany().SetComment(comment(ctx)))
		if err != nil {
			return fmt.Errorf("remove the scratch documents: %w", err)
		}
		return nil
	}
	if err := db.Collection(v.scratch).Drop(ctx); err != nil {
		return fmt.Errorf("remove the scratch collection %s: %w", v.scratch, err)
	}
	return nil
}

// field returns a document of one field.
func field(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }
