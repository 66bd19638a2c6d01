package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/overload"
)

// doorkeeper is a gate that counts admitted requests.
type doorkeeper struct {
	shut          bool
	asked, inside int
}

func (d *doorkeeper) BeginRequest(ctx context.Context, r *overload.Request) (context.Context, error) {
	d.asked++
	if d.shut || r.Class != overload.Page {
		return ctx, shed(overload.Processor)
	}
	d.inside++
	return overload.WithRequest(ctx, nil, 7), nil
}

func (d *doorkeeper) EndRequest() { d.inside-- }

// gated is a domain that records whether a page looks up its session between entering and leaving.
type gated struct {
	*fake
	gate      *doorkeeper
	panicking bool
	looked    bool
	within    bool // with the rank from the gate
}

func (g *gated) Session(ctx context.Context, cookie string) (accounts.Session, error) {
	g.looked, g.within = true, g.gate.inside == 1 && overload.RankFrom(ctx) == 7
	if g.panicking {
		panic("boom")
	}
	return g.fake.Session(ctx, cookie)
}

// TestPagesLeaveTheGate checks that each page enters the gate once and leaves it after its answer,
// whatever the answer is. A page that the gate refuses does no work.
func TestPagesLeaveTheGate(t *testing.T) {
	authorize := "/authorize?" + authorization().Encode()
	for name, tt := range map[string]struct {
		request
		anonymous bool // the page does not look up a session
	}{
		"index":                    {request: request{method: http.MethodGet, path: "/id/"}},
		"index, without the slash": {request: request{method: http.MethodGet, path: "/id"}},
		"authorization":            {request: request{method: http.MethodGet, path: "/id" + authorize}},
		"authorization by POST":    {request: request{path: "/id/authorize", body: authorization().Encode()}, anonymous: true},
		"consent":                  {request: request{path: "/id/consent", body: form("authorization", authorization().Encode(), "decision", "allow")}},
		"consents":                 {request: request{method: http.MethodGet, path: "/id/consents"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gated{fake: newFake(), gate: &doorkeeper{}}
			s := newServer(t, g.fake, func(o *httpapi.Options) {
				o.Issuer, o.Sessions, o.Shedder = "http://id.example/id", g, g.gate
			})
			tt.header = http.Header{"Cookie": {g.signedIn("alice")}}
			tt.send(t, s)
			check.Equal(t, "asked", g.gate.asked, 1)
			check.Equal(t, "works inside", g.within, !tt.anonymous)
			check.Equal(t, "inside afterwards", g.gate.inside, 0)

			g.panicking, g.looked = true, false
			tt.send(t, s)
			check.Equal(t, "panics", g.looked, !tt.anonymous)
			check.Equal(t, "inside after a panic", g.gate.inside, 0)

			g.gate.shut, g.looked = true, false
			res := tt.send(t, s)
			check.Equal(t, "status when it is refused", res.StatusCode, http.StatusServiceUnavailable)
			check.Equal(t, "Retry-After", res.Header.Get("Retry-After"), "2")
			check.Equal(t, "works in spite of that", g.looked, false)
			check.Equal(t, "inside after a refusal", g.gate.inside, 0)
		})
	}
}
