package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/overload"
)

// TestOverloadedStore: if any store operation of any flow is shed, the response has a retry time
// and nothing is consumed.
func TestOverloadedStore(t *testing.T) {
	shed := &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Store}
	eachStoreFailure(t, shed)

	w, f := failingWorld(t)
	req := refreshing(w.tokens("shop").RefreshToken)
	f.Operation, f.Err = "Get grants", shed
	_, err := w.token("shop", req)
	failed := check.As[*grants.Error](t, err)
	check.Equal(t, "RetryAfter", failed.RetryAfter, shed.RetryAfter)
	check.Equal(t, "description", failed.Description, "The server is overloaded; retry after 7 seconds.")
	if check.As[*overload.ShedError](t, err) != shed {
		t.Error("the refusal is not the cause")
	}
}

// TestOverloadedReadOfClients: the same holds if waiting for the newest clients fails.
func TestOverloadedReadOfClients(t *testing.T) {
	w := newWorld(t)
	issued := w.tokens("shop")
	shed := &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Store}
	w.reopen(func(o *grants.Options) { o.Clients = stopped{w.clients, w.clients, shed} })
	_, err := w.service.Introspect(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: issued.AccessToken})
	check.Equal(t, "RetryAfter of an introspection", check.As[*grants.Error](t, err).RetryAfter, shed.RetryAfter)
	_, err = w.token("shop", refreshing(newWorld(t).tokens("shop").RefreshToken))
	check.Equal(t, "RetryAfter of a refresh", check.As[*grants.Error](t, err).RetryAfter, shed.RetryAfter)
}
