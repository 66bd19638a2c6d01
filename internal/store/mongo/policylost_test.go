package mongo

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestFoldIsLost: with the first entries swept, what they came to is not known, and not taken for nothing.
func TestFoldIsLost(t *testing.T) {
	_, s, _ := throughProxy(t)
	changeTo(t, s, 5)
	_, err := s.SweepAudit(t.Context(), time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	check.OK(t, err)
	changeTo(t, s, 7)
	_, err = s.policies.DeleteMany(t.Context(), bson.D{})
	check.OK(t, err)
	if _, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{}); !errors.Is(err, clientcfg.ErrPolicyGap) {
		t.Errorf("started: %v", err)
	}
}
