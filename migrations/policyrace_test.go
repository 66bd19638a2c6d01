package migrations

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/mongotest"
)

// TestUpsertsAtTheSameTime: another process inserts the documents after an upsert has not found them. What
// it inserts is older in one case, and newer in the other.
func TestUpsertsAtTheSameTime(t *testing.T) {
	uri, name := mongotest.Database(t)
	proxy := mongotest.NewProxy(t, uri)
	direct := earlierRelease(mongotest.Connect(t, uri).Database(name))
	proxied := earlierRelease(mongotest.Connect(t, proxy.URI).Database(name))
	put := func(e earlier, targets ...PolicyTarget) {
		t.Helper()
		if err := PutPolicyTargets(t.Context(), e.policies, targets, "test"); err != nil {
			t.Error(err)
		}
	}
	proxy.Alter(mongotest.Collision(func() {
		put(direct, PolicyTarget{"policies/hot", 31, `{"note":"31"}`}, PolicyTarget{"policies/ahead", 40, `{"note":"40"}`})
	}))
	put(proxied, PolicyTarget{"policies/hot", 33, `{"note":"33"}`}, PolicyTarget{"policies/ahead", 32, `{"note":"32"}`})
	mark := func(e earlier, folded int64) {
		t.Helper()
		if err := PutPolicyMarker(t.Context(), e.policies, folded, "test"); err != nil {
			t.Error(err)
		}
	}
	proxy.Alter(mongotest.Collision(func() { mark(direct, 32) }))
	mark(proxied, 33)
	want := map[string]string{
		"policies/hot": `version 33, folded 0 {"note":"33"}`, "policies/ahead": `version 40, folded 0 {"note":"40"}`,
		PolicyMarker: "version -1, folded 33 ",
	}
	if diff := cmp.Diff(want, direct.contents(t)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	// A document of an earlier release stays.
	if _, err := direct.policies.DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	proxy.Alter(mongotest.Collision(func() { direct.change(t, 1, "{}") }))
	mark(proxied, 33)
	if diff := cmp.Diff(map[string]string{PolicyMarker: "version 1, folded 0 "}, direct.contents(t)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}
