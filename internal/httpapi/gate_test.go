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

// gated is a domain that counts admitted pages, and records whether a page looks up its session
// between entering and leaving.
type gated struct {
	*fake
	shut, panicking bool
	asked, inside   int
	looked          bool
	within          bool // with the rank from BeginRequest
}

func (g *gated) BeginRequest(ctx context.Context, r *overload.Request) (context.Context, error) {
	g.asked++
	if g.shut || r.Class != overload.Page {
		return ctx, shed(overload.Processor)
	}
	g.inside++
	return overload.WithRequest(ctx, nil, 7), nil
}

func (g *gated) EndRequest() { g.inside-- }

func (g *gated) Session(ctx context.Context, cookie string) (accounts.Session, error) {
	g.looked, g.within = true, g.inside == 1 && overload.RankFrom(ctx) == 7
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
			g := &gated{fake: newFake()}
			s := newServer(t, g.fake, func(o *httpapi.Options) {
				o.Issuer, o.Service = "http://id.example/id", g
			})
			tt.header = http.Header{"Cookie": {g.signedIn("alice")}}
			tt.send(t, s)
			check.Equal(t, "asked", g.asked, 1)
			check.Equal(t, "works inside", g.within, !tt.anonymous)
			check.Equal(t, "inside afterwards", g.inside, 0)

			g.panicking, g.looked = true, false
			tt.send(t, s)
			check.Equal(t, "panics", g.looked, !tt.anonymous)
			check.Equal(t, "inside after a panic", g.inside, 0)

			g.shut, g.looked = true, false
			res := tt.send(t, s)
			check.Equal(t, "status when it is refused", res.StatusCode, http.StatusServiceUnavailable)
			check.Equal(t, "Retry-After", res.Header.Get("Retry-After"), "2")
			check.Equal(t, "works in spite of that", g.looked, false)
			check.Equal(t, "inside after a refusal", g.inside, 0)
		})
	}
}
