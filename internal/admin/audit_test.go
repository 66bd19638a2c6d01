package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestTrailOfAll: changes of policies and of clients are in one list, each on one page.
func TestTrailOfAll(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 9 {
		w.clock.Advance(time.Second)
		if i%3 == 0 {
			w.patch("/settings", fmt.Sprintf(`{"note": "%d"}`, i)).is(200)
			want = append([]string{"settings"}, want...)
			continue
		}
		id := fmt.Sprint("c", i)
		w.post("/clients", `{"client_id": "`+id+`"}`).is(201)
		want = append([]string{"clients/" + id}, want...)
	}
	for limit := 1; limit <= 10; limit++ {
		var got []string
		query := url.Values{"limit": {fmt.Sprint(limit)}}
		for range 20 {
			var page adminapi.Audit
			w.get("/audit?" + query.Encode()).into(&page)
			for _, e := range page.Entries {
				got = append(got, e.Target)
			}
			if page.Next == 0 {
				break
			}
			query.Set("before", fmt.Sprint(page.Next))
		}
		check.Equal(t, fmt.Sprint("pages of ", limit), got, want)
	}
	w.get("/audit?target=settings").has("entries.#=3")
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} { // the trail cannot be written
		w.send(request{method: method, path: "/audit", token: writer}).is(http.StatusMethodNotAllowed)
	}
}

// TestUnknownOutcome: an entry says if it is unknown whether its change was made.
func TestUnknownOutcome(t *testing.T) {
	w := newWorld(t)
	e := clientcfg.Event{At: w.clock.Now(), Action: "delete", Target: "clients/shop", Before: []byte("null"), After: []byte("null"), Unknown: true}
	check.OK(t, w.store.AddEvent(t.Context(), e))
	check.Equal(t, "trail", w.events(""), []string{"delete clients/shop unknown"})
}

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
