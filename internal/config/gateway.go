package config

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"unicode"

	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/strict/fielderr"
)

// Gateway applies the limits in front of the token endpoint of another server, for the command
// gateway.
type Gateway struct {
	// Upstream is the URL of that server, without a path.
	Upstream string `json:"upstream,omitempty" help:"URL of the authorization server to limit, without a path" redact:"password"`
	// PublicURL is the origin at which clients reach the gateway. The upstream sees only this
	// origin, and no other is served.
	PublicURL string `json:"public_url,omitempty" help:"URL of the gateway for clients, without a path; the upstream sees no other host" redact:"password"`
	// TokenPath has the paths of its token endpoints. A segment * stands for any one segment, a
	// first segment ** for any number.
	TokenPath []string `json:"token_path,omitempty" help:"path of the upstream's token endpoint, repeatable; * matches one segment, ** at the start any number"`
	// Insecure allows plain HTTP beyond this machine: to Upstream and the introspection endpoint, or
	// queries to the judge. Every caller of /judge can use up the limits of any client.
	Insecure bool `json:"insecure,omitempty" help:"allow plain HTTP to an upstream on another machine, or from a proxy there"`
	// SubjectClaim names the user in the tokens of the upstream.
	SubjectClaim string `json:"subject_claim" help:"claim with the user in the upstream's tokens"`
	// Introspection is the endpoint that returns the users of opaque tokens.
	Introspection Introspection `json:"introspection,omitzero"`
	// OnError is the decision if the gateway itself fails to decide a request: allow or deny.
	OnError string `json:"on_error" help:"allow or deny a request that the gateway fails to decide because of a defect" values:"allow deny"`
	// MaxSubjects is the maximum number of refresh tokens and usernames with a known user.
	MaxSubjects int `json:"max_subjects" help:"maximum of refresh tokens and usernames with a known user" range:"1000 100000000"`
	// ShareSubjects stores the users of refresh tokens, for other instances and the next start.
	ShareSubjects bool `json:"share_subjects" help:"store the users of refresh tokens, for other instances and the next start"`
	// Judge makes this server answer the queries of another proxy instead of being a proxy. There
	// is then no Upstream.
	Judge bool `json:"judge,omitempty" help:"answer another proxy at /judge, instead of forwarding to --upstream"`
	// EnvoyListen is the address at which Envoy queries the judge over gRPC. Empty: no such
	// listener.
	EnvoyListen string `json:"envoy_listen,omitempty" help:"host:port to answer Envoy on over gRPC, with --judge; empty: off"`
}

// Enabled reports whether this server is a gateway, or decides for one.
func (g *Gateway) Enabled() bool { return g.Upstream != "" || g.Judge }

func defaultGateway() Gateway {
	return Gateway{SubjectClaim: "sub", OnError: "allow", MaxSubjects: 1_000_000, ShareSubjects: true}
}

// check checks the settings of a gateway that listens at listen.
func (g *Gateway) check(es *fielderr.Errors, listen string) {
	if !subject.Fit(g.SubjectClaim) {
		es.Add("gateway.subject_claim", "%q is not a claim name such as sub or preferred_username", g.SubjectClaim)
	}
	if g.Judge && g.Upstream != "" {
		es.Add("gateway.judge", "cannot be used together with upstream")
	}
	g.checkIgnored(es)
	for i, p := range g.TokenPath {
		if _, err := tokenrequest.ParsePath(p); err != nil {
			es.Add(fielderr.Item("gateway.token_path", i), "%q: %v", p, err)
		}
	}
	g.Introspection.check(es, g.Insecure)
	g.checkEnvoy(es)
	if g.Upstream == "" {
		if g.Introspection.URL != "" {
			es.Add("gateway.introspection.url", "needs upstream")
		}
		if g.PublicURL != "" {
			es.Add("gateway.public_url", "needs upstream")
		}
		return
	}
	g.checkPublicURL(es)
	u, err := url.Parse(g.Upstream)
	switch {
	case !isWeb(u, err):
		es.Add("gateway.upstream", "%q is not a URL such as https://idp.example.com", RedactURI(g.Upstream))
	case u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		es.Add("gateway.upstream", "must be only a scheme and a host; give the path of the token endpoint in token_path")
	case listensAt(listen, u):
		es.Add("gateway.upstream", "is this gateway itself, which listens on %s", listen)
	case u.Scheme == "http" && !redirecturi.IsLoopback(u.Hostname()) && !g.Insecure:
		es.Add("gateway.upstream", "must be https, because it receives secrets and tokens; on a private network, set insecure to allow http")
	}
	if len(g.TokenPath) == 0 {
		es.Add("gateway.token_path", "is missing: give the path of the upstream's token endpoint, such as /oauth2/token or /realms/*/protocol/openid-connect/token")
	}
}

func (g *Gateway) checkPublicURL(es *fielderr.Errors) {
	if g.PublicURL == "" {
		return
	}
	u, err := url.Parse(g.PublicURL)
	switch {
	case !isWeb(u, err) || strings.ContainsFunc(u.Host, func(c rune) bool { return c > unicode.MaxASCII }):
		es.Add("gateway.public_url", "%q is not a URL such as https://auth.example.com, in ASCII (xn-- for other letters)", RedactURI(g.PublicURL))
	case u.User != nil || u.Path != "" && u.Path != "/" || strings.ContainsAny(g.PublicURL, "?#"):
		es.Add("gateway.public_url", "must be only a scheme and a host")
	}
}

// checkIgnored reports settings that would have no effect.
func (g *Gateway) checkIgnored(es *fielderr.Errors) {
	if !g.Judge {
		return
	}
	usual := defaultGateway()
	for _, set := range []struct {
		name string
		is   bool
	}{
		{"subject_claim", g.SubjectClaim != usual.SubjectClaim},
		{"max_subjects", g.MaxSubjects != usual.MaxSubjects},
		{"share_subjects", g.ShareSubjects != usual.ShareSubjects},
	} {
		if set.is {
			es.Add("gateway."+set.name, "has no effect with judge, which does not see answers of the token endpoint")
		}
	}
	if len(g.TokenPath) > 0 && g.EnvoyListen == "" {
		es.Add("gateway.token_path", "has no effect with judge, except for envoy_listen: the proxy decides which requests to check")
	}
}

// listensAt reports whether a URL leads to the listen address on this machine, as far as both are
// numeric. Every request would then loop until no connections are left.
func listensAt(listen string, u *url.URL) bool {
	host, port, err := net.SplitHostPort(listen)
	ports := map[string]string{"http": "80", "https": "443"}
	if err != nil || port == "0" || cmp.Or(u.Port(), ports[u.Scheme]) != port {
		return false
	}
	return host == u.Hostname() || redirecturi.IsLoopback(u.Hostname()) && (host == "" || redirecturi.IsLoopback(host) || isUnspecified(host))
}

func isUnspecified(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsUnspecified()
}

func (g *Gateway) checkEnvoy(es *fielderr.Errors) {
	if g.EnvoyListen == "" {
		return
	}
	checkHostPort(es, "gateway.envoy_listen", g.EnvoyListen)
	if !g.Judge {
		es.Add("gateway.envoy_listen", "needs judge")
	}
	if !isLoopback(g.EnvoyListen) && !g.Insecure {
		es.Add("gateway.envoy_listen", "must be a loopback address, because anyone who can reach it can use up limits; on a private network, set insecure to allow another address")
	}
}
