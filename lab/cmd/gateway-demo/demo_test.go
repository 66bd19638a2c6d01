package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/lab/chart"
	"oauth-server/lab/traffic"
)

// TestDemo runs the demonstration before a real Keycloak, so briefly that its chart shows little.
func TestDemo(t *testing.T) {
	if os.Getenv(keycloakTestURL) == "" {
		t.Skip(errNoKeycloak)
	}
	k, err := keycloakOf(os.Getenv(keycloakTestURL))
	check.OK(t, err)
	const length = quiet + 2*time.Second
	without, with, err := compare(t.Context(), k, length)
	check.OK(t, err)
	check.Equal(t, "denied without the gateway", without.answered.Total("429"), 0)
	for _, o := range []*observed{without, with} {
		for _, c := range clients() {
			recorded, answered := len(of(o.arrived, c.ID)), o.answered[c.ID]["200"]
			if recorded < answered || recorded > answered+32 { // at the end of a run up to 32 requests of a client are given up
				t.Errorf("Keycloak has recorded %d tokens of %s, which got %d", recorded, c.ID, answered)
			}
			if denied := o.answered[c.ID]["429"]; c.ID != looping && denied > 0 {
				t.Errorf("%d requests of %s were denied", denied, c.ID)
			}
		}
	}
	if n := len(of(with.arrived, looping)); n > 2*20 { // two windows
		t.Errorf("%d requests of the client in a loop reached Keycloak through the gateway", n)
	}
	check.OK(t, compared(without, with, length).Write(filepath.Join(t.TempDir(), "chart.svg")))
	check.ErrorSays(t, k.call(t.Context(), http.MethodGet, "/admin/realms/none", nil, nil), "404")
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// after is an event so long after noon.
func after(d time.Duration, clientID string) event {
	return event{Time: noon.Add(d).UnixMilli(), ClientID: clientID}
}

func TestRates(t *testing.T) {
	for name, tt := range map[string]struct {
		events []event
		length time.Duration
		want   []chart.Point
	}{
		"none": {nil, 4 * time.Second, []chart.Point{{X: 0}, {X: 2}, {X: 4}}},
		"at an edge": {
			[]event{after(0, "a"), after(2*time.Second, "a"), after(2*time.Second, "b")},
			4 * time.Second,
			[]chart.Point{{X: 0, Y: 0.5}, {X: 2, Y: 1}, {X: 4, Y: 1}},
		},
		"not of them": {
			[]event{after(-time.Minute, "a"), after(4*time.Second, "a")},
			4 * time.Second,
			[]chart.Point{{X: 0}, {X: 2}, {X: 4}},
		},
		"no time": {[]event{after(0, "a")}, 0, []chart.Point{{X: 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "points", rates(tt.events, noon, tt.length), tt.want)
		})
	}
}

func TestCompared(t *testing.T) {
	o := &observed{
		began: noon, arrived: []event{after(0, looping), after(time.Second, "shop"), after(3*time.Second, looping)},
		answered: traffic.Summary{looping: {"200": 2, "429": 5}, "shop": {"200": 1, "429": 1}},
	}
	check.Equal(t, "figures", o.String(),
		"Keycloak issued 3 tokens, 2 of them for the client in a loop, at most 1.0/s; "+
			"6 requests were denied, 5 of them of that client")
	c := compared(o, o, 4*time.Second)
	check.Equal(t, "all", c.Series[1].Points, []chart.Point{{X: 0, Y: 1}, {X: 2, Y: 0.5}, {X: 4, Y: 0.5}})
	check.Equal(t, "of the loop", c.Series[2].Points, []chart.Point{{X: 0, Y: 0.5}, {X: 2, Y: 0.5}, {X: 4, Y: 0.5}})
	check.OK(t, c.Write(filepath.Join(t.TempDir(), "chart.svg")))
}
