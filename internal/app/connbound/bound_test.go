package connbound

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/observe/metrics"
)

func TestBounds(t *testing.T) {
	gateway := config.Gateway{Upstream: "http://127.0.0.1:8080"}
	judge := config.Gateway{Judge: true, EnvoyListen: "127.0.0.1:9001"}
	for name, tc := range map[string]struct {
		gateway       config.Gateway
		files, memory int64
		store         int
		clients, here int
		operators     int
		envoy         int
	}{
		"nothing is known":       {config.Gateway{}, 0, 0, 0, 65536, 16384, 128, 0},
		"few files":              {config.Gateway{}, 512, 0, 0, 320, 80, 128, 0},
		"fewer files":            {config.Gateway{}, 256, 0, 0, 64, 16, 128, 0},
		"128 files":              {config.Gateway{}, 128, 0, 0, 16, 4, 64, 0},
		"the usual files":        {config.Gateway{}, 1024, 8 << 30, 100, 732, 183, 128, 0},
		"many files, 1 GiB":      {config.Gateway{}, 65536, 1 << 30, 100, 8192, 2048, 128, 0},
		"many files, 128 MiB":    {config.Gateway{}, 65536, 128 << 20, 0, 1024, 256, 128, 0},
		"hardly any":             {config.Gateway{}, 64, 1 << 20, 100, 16, 4, 32, 0},
		"a gateway":              {gateway, 65536, 0, 0, 16336, 4084, 128, 0},
		"a gateway of few files": {gateway, 1024, 0, 0, 208, 52, 128, 0},
		"a judge":                {judge, 65536, 0, 0, 64320, 16080, 128, 1024},
		"a judge of few files":   {judge, 1024, 0, 0, 416, 104, 128, 416},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Gateway = tc.gateway
			b := New(cfg, tc.files, tc.memory, tc.store, nil)
			check.Equal(t, "clients", b.Clients.most, tc.clients)
			check.Equal(t, "of a source", b.Clients.perSource, tc.here)
			check.Equal(t, "operators", b.Operators.most, tc.operators)
			check.Equal(t, "operators of a source", b.Operators.perSource, tc.operators/2)
			check.Equal(t, "Envoy is bounded", b.Envoy != nil, tc.envoy > 0)
			if b.Envoy != nil {
				check.Equal(t, "Envoy", b.Envoy.most, tc.envoy)
			}
		})
	}
}

// TestBound checks which entries are cut and which are refused. A step is a new source, or an
// action on earlier ones.
func TestBound(t *testing.T) {
	const here, there, elsewhere, proxy = "192.0.2.1", "2001:db8::1", "192.0.2.3", "10.0.0.1"
	comes := func(from string) func(*fakes) { return func(f *fakes) { f.comes(from) } }
	wakes := func(i int) func(*fakes) { return func(f *fakes) { f.all[i].locked((*held).wake) } }
	rests := func(i int) func(*fakes) { return func(f *fakes) { f.all[i].locked((*held).rest) } }
	ends := func(i int) func(*fakes) { return func(f *fakes) { f.all[i].locked((*held).release) } }
	for name, tc := range map[string]struct {
		steps []func(*fakes)
		open  string // the numbers of the open ones at the end
		want  metrics.Refusals
	}{
		"room for all":         {[]func(*fakes){comes(here), comes(here), comes(there)}, "0 1 2", metrics.Refusals{}},
		"the oldest gives way": {[]func(*fakes){comes(here), comes(here), comes(here)}, "1 2", metrics.Refusals{Silent: 1}},
		"the most silent":      {[]func(*fakes){comes(here), comes(here), rests(0), comes(here)}, "0 2", metrics.Refusals{Silent: 1}},
		"one with a request":   {[]func(*fakes){comes(here), comes(here), wakes(0), comes(here)}, "0 2", metrics.Refusals{Silent: 1}},
		"after its request":    {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), rests(0), comes(here)}, "1 2", metrics.Refusals{Silent: 1}},
		"all have requests":    {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), comes(here)}, "0 1", metrics.Refusals{Source: 1}},
		"and others come":      {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), comes(here), comes(there)}, "0 1 3", metrics.Refusals{Source: 1}},
		"a /64 is one source":  {[]func(*fakes){comes(there), comes("2001:db8::2"), comes("2001:db8::3")}, "1 2", metrics.Refusals{Silent: 1}},
		"in all":               {[]func(*fakes){comes(here), comes(here), comes(there), comes(there), comes(elsewhere)}, "1 2 3 4", metrics.Refusals{Silent: 1}},
		"in all, busy":         {[]func(*fakes){comes(here), comes(here), comes(there), comes(there), wakes(0), wakes(1), wakes(2), wakes(3), comes(elsewhere)}, "0 1 2 3", metrics.Refusals{Total: 1}},
		"room again":           {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), ends(0), ends(0), comes(here)}, "1 2", metrics.Refusals{}},
		"its only one":         {[]func(*fakes){comes(here), comes(there), comes(there), comes(proxy), wakes(1), wakes(2), wakes(3), comes(here)}, "0 1 2 3 4", metrics.Refusals{}},
		"a proxy":              {[]func(*fakes){comes(proxy), comes(proxy), comes(proxy), comes(proxy), comes(proxy)}, "1 2 3 4", metrics.Refusals{Silent: 1}},
		"after the end":        {[]func(*fakes){comes(here), ends(0), rests(0), wakes(0), comes(here), comes(here)}, "1 2", metrics.Refusals{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Bound{most: 4, perSource: 2, trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, log: slog.New(slog.DiscardHandler)}
			if name == "its only one" {
				b.most = 5
			}
			f := &fakes{bound: b}
			for _, step := range tc.steps {
				step(f)
			}
			var open []string
			for i, h := range f.all {
				if h != nil && !h.released {
					open = append(open, fmt.Sprint(i))
				}
			}
			check.Equal(t, "open", strings.Join(open, " "), tc.open)
			st := b.stats()
			check.Equal(t, "counted", st.Open, len(open))
			check.Equal(t, "refusals", st.Refusals, tc.want)
			for _, h := range f.all {
				if h != nil {
					h.locked((*held).release)
				}
			}
			check.Equal(t, "sources at the end", len(b.sources), 0)
			check.Equal(t, "silent at the end", b.all[connections].silent.Len(), 1) // its beginning
		})
	}
}

// fakes are connections. A refused one is nil.
type fakes struct {
	bound *Bound
	all   []*held
}

func (f *fakes) comes(from string) {
	f.all = append(f.all, f.bound.take(connections, netip.MustParseAddr(from), func() {}))
}
