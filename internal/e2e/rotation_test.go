package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestTwoSecretsDuringARotation: the old secret works beside the new one for as long as was said, and
// the last use of each is shown, after a restart too.
func TestTwoSecretsDuringARotation(t *testing.T) {
	s := start(t, unlimited)
	check.Equal(t, "exit status", s.stop(), 0)
	type shown struct {
		Secret string    `json:"client_secret"`
		Until  time.Time `json:"former_secret_valid_until"`
		Used   time.Time `json:"secret_used_at"`
		Former struct {
			Until time.Time `json:"valid_until"`
			Used  time.Time `json:"used_at"`
		} `json:"former_secret"`
	}
	client := func(args ...string) (c shown) {
		t.Helper()
		out, err := command(t.Context(), "", append(append([]string{"client"}, args...), "--data", s.data(), "-o", "json")...)
		check.OK(t, err)
		check.OK(t, json.Unmarshal(out, &c))
		return c
	}
	status := func(secret string) int {
		t.Helper()
		return s.from("127.0.0.1", "/token", "shop", secret, url.Values{"grant_type": {"client_credentials"}}).status
	}
	rotated := client("rotate-secret", "shop", "--overlap", "1h")
	if left := time.Until(rotated.Until); left < 50*time.Minute || left > time.Hour {
		t.Errorf("the old secret stays valid until %v", rotated.Until)
	}
	if c := client("show", "shop"); !c.Used.IsZero() || !c.Former.Used.IsZero() || !c.Former.Until.Equal(rotated.Until) {
		t.Errorf("before any use: %+v", c)
	}
	s.up()
	for secret, want := range map[string]int{rotated.Secret: http.StatusOK, secrets["shop"]: http.StatusOK, "x": http.StatusUnauthorized} {
		check.Equal(t, "status", status(secret), want)
	}
	check.Equal(t, "exit status", s.stop(), 0)
	c := client("show", "shop")
	for _, used := range []time.Time{c.Used, c.Former.Used} {
		if ago := time.Since(used); ago < 0 || ago > startTimeout+2*time.Minute {
			t.Errorf("last used %v", used)
		}
	}

	again := client("rotate-secret", "shop") // which ends the overlap
	s.up()
	check.Equal(t, "status", status(again.Secret), http.StatusOK)
	for _, old := range []string{rotated.Secret, secrets["shop"]} {
		check.Equal(t, "status", status(old), http.StatusUnauthorized)
	}
	check.Equal(t, "exit status", s.stop(), 0)
	if c := client("show", "shop"); !c.Former.Until.IsZero() || c.Used.IsZero() {
		t.Errorf("after the second rotation: %+v", c)
	}
}
