// Command gateway-demo draws what a gateway keeps away from a Keycloak: it sends the same traffic to it twice, directly and
// through oauth-server gateway, and draws how many token requests Keycloak has recorded each second. One of the clients
// asks for a token before each of its calls. `make gateway-demo` runs it:
//
//	go -C lab run ./cmd/gateway-demo
//
// KEYCLOAK_TEST_URL is the URL of the Keycloak, with the name and the password of its administrator; the Makefile starts
// one if it is not set. It makes a realm for each run, and deletes it afterwards.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"oauth-server/lab/chart"
	"oauth-server/lab/process"
	"oauth-server/lab/traffic"
)

const (
	length  = time.Minute // of each of the two runs
	picture = "../docs/pictures/gateway-keycloak.svg"
)

func main() {
	process.Main("gateway-demo", show)
}

// show runs the demonstration, prints its figures and draws the chart.
func show(ctx context.Context) error {
	k, err := keycloakOf(os.Getenv(keycloakTestURL))
	if err != nil {
		return err
	}
	without, with, err := compare(ctx, k, length)
	if err != nil {
		return err
	}
	fmt.Printf("without the gateway: %s\nwith the gateway:    %s\n", without, with)
	if err := compared(without, with, length).Write(picture); err != nil {
		return err
	}
	fmt.Println("drew", picture)
	return nil
}

// compare returns what Keycloak has recorded of the traffic without a gateway, and of the same with one.
func compare(ctx context.Context, k *keycloak, length time.Duration) (without, with *observed, err error) {
	dir, err := os.MkdirTemp("", "gateway-demo-*")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if without, err = k.observe(ctx, k.base, length); err != nil {
		return nil, nil, err
	}
	g, err := startGateway(ctx, dir, k.base)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	with, err = k.observe(ctx, g.URL(), length)
	return without, with, err
}

// observed is one run.
type observed struct {
	began    time.Time
	arrived  []event         // at Keycloak
	answered traffic.Summary // by Keycloak or the gateway
}

// String is the run in figures.
func (o *observed) String() string {
	most := 0.0
	for _, p := range rates(o.arrived, o.began, time.Minute) {
		most = max(most, p.Y)
	}
	return fmt.Sprintf("Keycloak issued %d tokens, %d of them for the client in a loop, at most %.1f/s; "+
		"%d requests were denied, %d of them of that client",
		len(o.arrived), len(of(o.arrived, looping)), most, o.answered.Total("429"), o.answered[looping]["429"])
}

// observe sends the traffic to the token endpoint of a realm of its own, at the base URL, and returns what Keycloak
// has recorded.
func (k *keycloak) observe(ctx context.Context, base string, length time.Duration) (_ *observed, err error) {
	realm, err := k.newRealm(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.deleteRealm(context.WithoutCancel(ctx), realm)) }()
	load, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	o := &observed{began: time.Now()}
	o.answered = traffic.Run(load, traffic.Options{
		Targets:     []string{base + "/realms/" + realm + "/protocol/openid-connect"},
		Credentials: traffic.Credentials{Secrets: secrets()}, Clients: clients(), Seed: 1, // the same for both
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n := o.answered.Total("error"); n > 0 {
		return nil, fmt.Errorf("%d requests to %s were not answered", n, base)
	}
	o.arrived, err = k.events(ctx, realm)
	return o, err
}

// compared is the chart of both runs.
func compared(without, with *observed, length time.Duration) *chart.Chart {
	line := func(name string, o *observed, id string) chart.Series {
		arrived := o.arrived
		if id != "" {
			arrived = of(arrived, id)
		}
		return chart.Series{Name: name, Points: rates(arrived, o.began, length), Step: true}
	}
	series := []chart.Series{
		line("without the gateway", without, ""),
		line("with the gateway", with, ""),
		line("with the gateway, the looping client only", with, looping),
	}
	series[0].Color, series[2].Dashes = chart.Red, chart.Dotted
	return &chart.Chart{
		Title:    "Tokens that Keycloak issues",
		Subtitle: fmt.Sprintf("%d clients; one of them loops from second %d on", len(clients()), int(quiet.Seconds())),
		X:        chart.Axis{Label: "seconds", Max: length.Seconds()}, Y: chart.Axis{Label: "tokens/s"},
		Series: series,
	}
}

// perPoint is the time between two points of the chart.
const perPoint = 2 * time.Second

// rates returns how many events there were a second, by the seconds since began.
func rates(all []event, began time.Time, length time.Duration) []chart.Point {
	points := make([]chart.Point, length/perPoint+1)
	for i := range points {
		points[i].X = (time.Duration(i) * perPoint).Seconds()
	}
	for _, e := range all {
		if i := int(e.at().Sub(began) / perPoint); i >= 0 && i < len(points)-1 {
			points[i].Y += 1 / perPoint.Seconds()
		}
	}
	if last := len(points) - 1; last > 0 {
		points[last].Y = points[last-1].Y // where the last step ends
	}
	return points
}

// of returns the events of one client.
func of(all []event, clientID string) (its []event) {
	for _, e := range all {
		if e.ClientID == clientID {
			its = append(its, e)
		}
	}
	return its
}
