package admin_test

import (
	"net/http"
	"testing"

	"oauth-server/internal/check"
)

// TestTrailOfAUser: the trail of a user is found under any spelling of the name, even after the
// user is deleted.
func TestTrailOfAUser(t *testing.T) {
	w := newWorld(t)
	w.post("/users", `{"username": "grace", "password": "correct horse battery staple"}`).is(http.StatusCreated)
	want := []string{"create users/grace"}
	check.Equal(t, "trail", w.events("?target=users/GRACE"), want)
	w.change(http.MethodDelete, "/users/grace", "").is(http.StatusNoContent)
	want = append([]string{"delete users/grace"}, want...)
	check.Equal(t, "trail of a deleted user", w.events("?target=users/Grace"), want)
	check.Equal(t, "no user", w.events("?target=clients/GRACE"), nil)
}
