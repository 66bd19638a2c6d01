package admin_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
)

// TestPresetIsWhatATierTakes: the lists of each preset are valid for a tier without changes.
func TestPresetIsWhatATierTakes(t *testing.T) {
	w := newWorld(t)
	var list adminapi.Presets
	check.OK(t, json.Unmarshal(w.get("/presets").body, &list))
	check.Equal(t, "presets", len(list.Presets), 5)
	for _, p := range list.Presets {
		body, err := json.Marshal(map[string]any{"user": p.User, "client": p.Client})
		check.OK(t, err)
		made := w.create("/tiers/"+p.Name, string(body)).is(http.StatusOK)
		var tier adminapi.Tier
		check.OK(t, json.Unmarshal(made.body, &tier))
		tier.Clients, tier.Meta = nil, adminapi.Meta{}
		check.Equal(t, "tier of "+p.Name, tier, adminapi.Tier{Name: p.Name, Lists: adminapi.Lists{User: p.User, Client: p.Client}})
	}
	refused := w.send(request{method: http.MethodGet, path: "/presets?prefix=o&x=1", token: reader}).is(http.StatusUnprocessableEntity)
	refused.says("unknown query parameter; this operation has none")
	w.send(request{method: http.MethodGet, path: "/presets", token: ""}).is(http.StatusUnauthorized)
}
