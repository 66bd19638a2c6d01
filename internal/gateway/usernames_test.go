package gateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/check"
)

// TestUsernamesAtTwoClients: a username that is used at another client, too, leads to its user at both.
func TestUsernamesAtTwoClients(t *testing.T) {
	w := newWorld(t, 2)
	w.upstream(issues("0b5c", ""))
	for i, want := range []int{200, 200, 429} {
		for _, client := range []string{"shop", "app"} {
			got := w.send(http.MethodPost, tokenPath, "client_id="+client+"&grant_type=password&username=ada&password=p").status
			check.Equal(t, fmt.Sprint(client, i), got, want)
		}
	}
}
