package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/oautherr"
)

// TestForPeople: a page shows long waits in minutes or hours.
func TestForPeople(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Second: "1 second", 37 * time.Second: "37 seconds", 119 * time.Second: "119 seconds",
		2 * time.Minute: "about 2 minutes", 121 * time.Second: "about 3 minutes", 2*time.Hour - time.Second: "about 120 minutes",
		2 * time.Hour: "about 2 hours", 47_224 * time.Second: "about 14 hours",
	} {
		check.Equal(t, wait.String(), (&oautherr.LimitedError{RetryAfter: wait}).ForPeople(), "; try again in "+want+".")
	}
}
