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
	// Waiting is called every five seconds of that wait, and at its start. May be nil.
	Waiting func(elapsed time.Duration)
}

// difference is the error of a server that does something else than MongoDB.
type difference string

func (d difference) Error() string { return string(d) }

func differs(format string, args ...any) error { return difference(fmt.Sprintf(format, args...)) }

// verifier runs probes. All of them write and read with the concern majority.
type verifier struct {
	store       *Store // the probes write to its counters
	scratch     bool   // the counters are in a scratch collection
	options     VerifyOptions
	client      string          // of the counters: no client ID has a space
	ids         []bson.D        // of the counters
	interrupted <-chan struct{} // ends a wait
}

// Verify runs all checks in a scratch collection, and drops it at the end, also when ctx ends. It
// returns an error if the checks ended early or the collection may be left, and beside it what was found
// until then.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Verification, error) {
	own := *s
	own.counters = s.db.Collection("verify_scratch_" + rand.Text())
	v := verifier{store: &own, scratch: true, options: o}
	return v.run(ctx, relied)
}

// VerifyCounters runs the checks of the writes and reads of counters. It needs the rights of serving
// only: it writes a few counters of a client ID that no client can have, and deletes them. If the
// process dies in between, the TTL index does. Results and errors are as those of [Store.Verify].
func (s *Store) VerifyCounters(ctx context.Context) (Verification, error) {
	v := verifier{store: s}
	return v.run(ctx, relied[:atStart])
}

func (v *verifier) run(ctx context.Context, properties []property) (all Verification, err error) {
	v.client, v.interrupted = "verify scratch "+rand.Text(), ctx.Done()
	for i, p := range properties {
		c := Check{Number: i + 1, Name: p.name, Exact: i < exact, Status: CheckUnchecked, Detail: "not checked, because of what failed before"}
		if err == nil {
			err = v.check(ctx, &c, p)
		}
		all.Checks = append(all.Checks, c)
	}
	return all, errors.Join(err, run(ctx, "verify", v.cleanUp))
}

// check runs one probe. The error is one that ends all checks: the server is away, or a right is missing.
// A probe runs to its end, also when ctx ends: a write that was abandoned could arrive after the scratch
// collection is dropped, and create it again.
func (v *verifier) check(ctx context.Context, c *Check, p property) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*v.store.timeout+v.options.WaitTTL)
	defer cancel()
	var measured string
	err := run(bounded, "verify", func(ctx context.Context) (err error) {
		measured, err = p.probe(v, ctx)
		return err
	})
	var other difference
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		c.Status, c.Detail = CheckOK, measured
		return nil
	case errors.As(err, &other):
		err = other
	case isAway(err), c.Exact && hasCode(err, unauthorized):
		return err
	}
	c.Status, c.Detail, c.Follows = CheckMissing, err.Error(), p.follows
	if c.Exact || other != "" {
		c.Status = CheckFailed
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
func (v *verifier) cleanUp(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
	defer cancel()
	c := v.store.db.Collection(v.store.counters.Name(), options.Collection().SetWriteConcern(writeconcern.W1()))
	if v.scratch {
		err = c.Drop(ctx)
	} else {
		_, err = c.DeleteMany(ctx, byID(field("$in", v.ids)), options.DeleteMany().SetComment(comment(ctx)))
	}
	if err != nil {
		return fmt.Errorf("remove the scratch documents in %s: %w", c.Name(), err)
	}
	return nil
}
