package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

func TestLabelsOfAClient(t *testing.T) {
	w := newWorld(t)
	made := w.post("/clients", `{"client_id": "new", "labels": {"team": "payments", "app.kubernetes.io": "", "gone": null}}`).is(http.StatusCreated)
	check.Equal(t, "made", fmt.Sprint(made.at("labels")), "map[app.kubernetes.io: team:payments]")
	w.patch("/clients/new", `{"labels": {"team": "orders", "app.kubernetes.io": null, "zone": "a"}}`).is(http.StatusOK)
	check.Equal(t, "merged", fmt.Sprint(w.get("/clients/new").at("labels")), "map[team:orders zone:a]")
	w.patch("/clients/new", `{"client_name": "New"}`).is(http.StatusOK)
	check.Equal(t, "untouched", fmt.Sprint(w.get("/clients/new").at("labels")), "map[team:orders zone:a]")
	before := w.get("/clients/new").header.Get("ETag")
	w.patch("/clients/new", `{"labels": {"zone": "b"}}`).is(http.StatusOK)
	check.Equal(t, "same ETag", w.get("/clients/new").header.Get("ETag") == before, false)
	w.put("/clients/new", `{"client_id": "new"}`).is(http.StatusOK)
	if strings.Contains(string(w.get("/clients/new").body), "labels") {
		t.Errorf("PUT replaces all: %s", w.get("/clients/new").body)
	}
	before1 := w.get("/audit?target=clients/new&limit=1").at("entries", 0, "before", "labels")
	check.Equal(t, "in the trail", fmt.Sprint(before1), "map[team:orders zone:b]")
}

func TestInvalidLabels(t *testing.T) {
	w := newWorld(t)
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf(`"n%d": ""`, i))
	}
	for body, field := range map[string]string{
		`{"Team": "x"}`:                          "labels.Team",
		`{"team": "a b"}`:                        "labels.team",
		`{"team": "a\nzone=b"}`:                  "labels.team",
		`{"te.am": "ä"}`:                         `labels["te.am"]`,
		`{"team": 5}`:                            "labels.team",
		`{"": ""}`:                               `labels[""]`,
		`["team=payments"]`:                      "labels",
		`{` + strings.Join(many, ", ") + `}`:     "labels",
		`{"` + strings.Repeat("n", 64) + `":""}`: "labels." + strings.Repeat("n", 64),
	} {
		for _, a := range []answer{
			w.post("/clients", `{"client_id": "new", "labels": `+body+`}`), w.put("/clients/shop", `{"client_id": "shop", "labels": `+body+`}`),
		} {
			a.is(http.StatusUnprocessableEntity).has("errors.#=1")
			a.has("errors.0.field=" + field)
		}
	}
}
