package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestNamesThatAreTaken: the response says whether a user or a client has the name.
func TestNamesThatAreTaken(t *testing.T) {
	w := newWorld(t)
	const password = `"password": "correct horse battery staple"`
	w.post("/users", `{"username": "grace", `+password+`}`).is(http.StatusCreated)
	for _, tt := range []struct{ path, body, says string }{
		{"/clients", `{"client_id": "shop"}`, "there is a client \"shop\" already"},
		{"/clients", `{"client_id": "grace"}`, "there is a user \"grace\": "},
		{"/users", `{"username": "grace", ` + password + `}`, "there is a user \"grace\" already"},
		{"/users", `{"username": "GRACE", ` + password + `}`, "there is a user \"grace\" already"},
		{"/users", `{"username": "shop", ` + password + `}`, "there is a client \"shop\": "},
	} {
		a := w.post(tt.path, tt.body).is(http.StatusConflict)
		check.Equal(t, tt.body, strings.HasPrefix(a.at("detail").(string), tt.says), true)
	}
}
