package gateway

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// publicOrigin is the origin that the upstream sees, from [Options].PublicURL.
type publicOrigin struct{ scheme, host, port string } // the host includes the port, unless it is the default port

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// newPublicOrigin returns nil for nil.
func newPublicOrigin(u *url.URL) *publicOrigin {
	if u == nil {
		return nil
	}
	o := &publicOrigin{scheme: u.Scheme, port: u.Port()}
	if o.port == "" {
		o.port = defaultPorts[u.Scheme]
	}
	o.host = o.plain(u.Host)
	return o
}

// plain normalizes a host to the form of publicOrigin.host: lower case, no trailing dot, no default
// port.
func (o *publicOrigin) plain(host string) string {
	name, port := host, ""
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		name, port = host[:colon], host[colon+1:]
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if port == "" || port == defaultPorts[o.scheme] {
		return name
	}
	return name + ":" + port
}

// serves reports whether the request is for the public host (RFC 9110 section 7.4). Without a
// PublicURL the gateway serves every host.
func (g *Gateway) serves(r *http.Request) bool {
	return g.public == nil || g.public.plain(g.o.ClientHost(r)) == g.public.host
}

// setOrigin sets the fields about the origin of a request to the upstream, and returns its host. It
// removes the values that the client or a proxy sent. client is zero if it is unknown, or if the
// gateway sends the request itself.
func (g *Gateway) setOrigin(header http.Header, client netip.Addr, proxied bool) (host string) {
	maps.DeleteFunc(header, func(name string, _ []string) bool { return aboutOrigin(name, proxied) })
	if client.IsValid() {
		address := []string{client.String()}
		header["X-Forwarded-For"], header["X-Real-Ip"] = address, address
	}
	p := g.public
	if p == nil {
		return g.o.Upstream.Host
	}
	header["X-Forwarded-Host"] = []string{p.host}
	header["X-Forwarded-Proto"] = []string{p.scheme}
	header["X-Forwarded-Port"] = []string{p.port}
	header["Forwarded"] = []string{forwarded(client, p)}
	return p.host
}

// forwarded returns the value of the Forwarded field (RFC 7239).
func forwarded(client netip.Addr, p *publicOrigin) string {
	node := "unknown"
	switch {
	case client.Is4():
		node = client.String()
	case client.Is6():
		node = `"[` + client.String() + `]"`
	}
	return "for=" + node + `;host="` + p.host + `";proto=` + p.scheme
}

// Fields about the origin of a request that some identity provider, framework or server trusts, in
// the form of appendPlain. A trailing * matches any suffix.
var (
	// originFields hold the client address, or the host, path or scheme of the request.
	originFields = newFieldSet(`forwarded* x-forwarded* x-original-* x-rewrite-* x-real-* x-host* x-http-host* x-server-name
		x-scheme x-url-scheme x-proto x-https x-ssl front-end-https x-arr-ssl cf-visitor fastly-ssl x-script-name script-name x-base-url
		client-ip x-client-ip x-client-host true-client-ip x-true-client-ip x-cluster-client-ip x-proxyuser-ip proxy-client-ip
		wl-proxy-* -ws* x-remote-ip x-remote-addr remote-addr x-originating-ip cf-connecting-* cf-pseudo-* do-connecting-ip
		fastly-client-* fly-client-ip fly-forwarded-* incap-client-ip x-azure-clientip x-azure-socketip x-appengine-user-ip
		x-nf-client-connection-ip x-vercel-forwarded-* x-vercel-proxied-* x-envoy-external-address x-envoy-original-* proxy`)
	// identityFields hold the identity of the sender. A proxy that terminates TLS may know it, for
	// example from a certificate (RFC 9440).
	identityFields = newFieldSet(`remote-user x-remote-user x-webauth-user x-auth-request-* iv-user iv-groups iv-creds sm-user
		oam-remote-user client-cert* ssl-client-* x-ssl-client-* ssl-cert* x-client-cert* x-tls-client-* tls-client-* x-arr-clientcert
		x-amzn-mtls-*`)
)

// fieldSet is a set of names, and of name prefixes by their first letter.
type fieldSet struct {
	exact  map[string]bool
	begins map[byte][]string
}

func newFieldSet(names string) fieldSet {
	set := fieldSet{map[string]bool{}, map[byte][]string{}}
	for name := range strings.FieldsSeq(names) {
		if begin, open := strings.CutSuffix(name, "*"); open {
			set.begins[begin[0]] = append(set.begins[begin[0]], begin)
		} else {
			set.exact[name] = true
		}
	}
	return set
}

func (s *fieldSet) has(name []byte) bool {
	if len(name) == 0 {
		return false
	}
	for _, begin := range s.begins[name[0]] {
		if len(name) >= len(begin) && string(name[:len(begin)]) == begin {
			return true
		}
	}
	return s.exact[string(name)]
}

// aboutOrigin reports whether the gateway removes a request field before forwarding. A trusted
// proxy may set identity fields. The gateway sets all other fields itself.
func aboutOrigin(name string, proxied bool) bool {
	var space [64]byte // avoids an allocation for most names
	plain := appendPlain(space[:0], name)
	return originFields.has(plain) || !proxied && identityFields.has(plain)
}

// appendPlain appends a field name in the form in which CGI-style servers (RFC 3875) compare it.
// They treat an underscore as a dash, and some treat every character except letters and digits as
// one.
func appendPlain(to []byte, name string) []byte {
	for _, c := range []byte(name) {
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		default:
			c = '-'
		}
		to = append(to, c)
	}
	return to
}
