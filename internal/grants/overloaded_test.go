package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
)

// TestOverloadedStore: a refusal at any operation of any flow is answered with when to try again, and costs nothing.
func TestOverloadedStore(t *testing.T) {
	shed := &admission.ShedError{RetryAfter: 7 * time.Second, Short: admission.Store}
	eachStoreFailure(t, shed)

	w, f := failingWorld(t)
	req := refreshing(w.tokens("shop").RefreshToken)
	f.operation, f.err = "Family", shed
	_, err := w.token("shop", req)
	failed := as[*grants.Error](t, err)
	check.Equal(t, "RetryAfter", failed.RetryAfter, shed.RetryAfter)
	check.Equal(t, "description", failed.Description, "The server is overloaded; retry after 7 seconds.")
	if as[*admission.ShedError](t, err) != shed {
		t.Error("the refusal is not the cause")
	}
}
