package mongo

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestVerifyUnsent: a command that got no connection, because another one had failed, says nothing about the
// server, which answers again right afterwards.
func TestVerifyUnsent(t *testing.T) {
	uri, database := mongotest.Database(t)
	proxy := mongotest.NewProxy(t, uri)
	asked := make(chan struct{}, 100) // for a connection
	client, err := mongo.Connect(clientOptions(proxy.URI).SetMaxPoolSize(1).SetPoolMonitor(&event.PoolMonitor{
		Event: func(e *event.PoolEvent) {
			if e.Type == event.ConnectionCheckOutStarted {
				asked <- struct{}{}
			}
		},
	}))
	check.OK(t, err)
	s := newStore(client, database)
	t.Cleanup(func() { check.OK(t, s.Close()) })
	check.OK(t, s.Ping(t.Context()))
	<-asked

	arrived := make(chan struct{})
	hangs := upTo(1, named("buildInfo"))
	proxy.Alter(mongotest.Alteration{Answer: func(c bson.D) bson.D {
		if hangs(c) {
			close(arrived)
			<-t.Context().Done()
		}
		return nil
	}})
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { // has the only connection
		if err := s.db.RunCommand(t.Context(), field("buildInfo", 1)).Err(); !mongo.IsNetworkError(err) {
			t.Errorf("the connection broke: %v", err)
		}
	})
	<-arrived
	<-asked
	others.Go(func() { // as soon as the step asks for the connection
		<-asked
		proxy.Break()
	})
	var unsent error
	report := func(step func(ctx context.Context) error) {
		t.Helper()
		v := newVerifier(s, s.db.Collection("scratch"), true)
		r, err := v.verify(t.Context(), func(ctx context.Context) error {
			v.check(checkRoundTrip)
			return v.run(ctx, func(ctx context.Context) error { return v.refused(checkRoundTrip, CheckFailed, step(ctx)) })
		}, v.drop)
		found := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Number == checkRoundTrip })
		if !isUnsent(err) || r.Checks[found].Status != CheckUnchecked {
			t.Errorf("%+v, %v", r.Checks[found], err)
		}
	}
	report(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second) // the driver tries again until then
		defer cancel()
		unsent = s.db.RunCommand(ctx, field("ping", 1)).Err()
		proxy.Restore()
		return unsent
	})
	// This is how the driver returns it to a command that comes a little later.
	late := mongo.CommandError{Message: unsent.Error(), Wrapped: driver.Error{Wrapped: unsent}}
	report(func(context.Context) error { return late })
}
