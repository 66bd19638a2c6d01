package envoy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/envoy"
)

// example is a file of deploy/envoy. Every message in it, also nested ones, has a known type and is
// valid.
type example struct {
	*bootstrapv3.Bootstrap
	manager *managerv3.HttpConnectionManager
	filters map[string]proto.Message
	token   *routev3.Route // of the token endpoint
	others  *routev3.Route
}

// parse reads a file as Envoy does: strictly, and with all validation rules of its messages.
func parse(t *testing.T, file string) *example {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "envoy", file))
	check.OK(t, err)
	var document any
	check.OK(t, yaml.Unmarshal(raw, &document))
	text, err := json.Marshal(document)
	check.OK(t, err)
	x := &example{Bootstrap: &bootstrapv3.Bootstrap{}, manager: &managerv3.HttpConnectionManager{}, filters: map[string]proto.Message{}}
	check.OK(t, protojson.Unmarshal(text, x.Bootstrap))
	check.OK(t, x.ValidateAll())
	chains := x.GetStaticResources().GetListeners()[0].GetFilterChains()
	unpack(t, chains[0].GetFilters()[0].GetTypedConfig(), x.manager)
	for _, f := range x.manager.GetHttpFilters() {
		x.filters[f.GetName()] = valid(t, f.GetTypedConfig())
	}
	routes := x.manager.GetRouteConfig().GetVirtualHosts()[0].GetRoutes()
	check.Equal(t, "routes", len(routes), 3)
	check.Equal(t, "answer in between", routes[1].GetDirectResponse().GetStatus(), uint32(400))
	x.token, x.others = routes[0], routes[2]
	for _, r := range routes {
		for name, override := range r.GetTypedPerFilterConfig() {
			valid(t, override)
			check.Equal(t, "there is a filter "+name, x.filters[name] != nil, true)
		}
	}
	return x
}

// valid unpacks a message of a known type and validates it.
func valid(t *testing.T, packed *anypb.Any) proto.Message {
	t.Helper()
	m, err := packed.UnmarshalNew()
	check.OK(t, err)
	v, ok := m.(interface{ ValidateAll() error })
	check.Equal(t, packed.GetTypeUrl()+" has rules", ok, true)
	check.OK(t, v.ValidateAll())
	return m
}

func unpack(t *testing.T, packed *anypb.Any, to proto.Message) {
	t.Helper()
	proto.Merge(to, valid(t, packed))
}

// wantClusters checks that every cluster name refers to a cluster, and that the judge's cluster
// uses HTTP/2 on a loopback address and has health checks.
func (x *example) wantClusters(t *testing.T, asks, service string) {
	t.Helper()
	check.Equal(t, "cluster that is asked", asks, "judge")
	var names []string
	for _, c := range x.GetStaticResources().GetClusters() {
		names = append(names, c.GetName())
		if c.GetName() != "judge" {
			continue
		}
		options := &httpv3.HttpProtocolOptions{}
		unpack(t, c.GetTypedExtensionProtocolOptions()["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"], options)
		check.Equal(t, "HTTP/2", options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil, true)
		check.Equal(t, "service that is checked", c.GetHealthChecks()[0].GetGrpcHealthCheck().GetServiceName(), service)
		at := c.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
		check.Equal(t, "address", at.GetAddress(), "127.0.0.1")
	}
	for _, r := range []*routev3.Route{x.token, x.others} {
		check.Equal(t, "cluster "+r.GetRoute().GetCluster(), slices.Contains(names, r.GetRoute().GetCluster()), true)
	}
	check.Equal(t, "clusters", len(names), 2)
}

// wantPaths checks that the route of the token endpoint matches its path however lenient servers
// read it, and no other path, and that the filter is enabled only there.
func (x *example) wantPaths(t *testing.T, filter string) {
	t.Helper()
	pattern := regexp.MustCompile("^(?:" + x.token.GetMatch().GetSafeRegex().GetRegex() + ")$") // Envoy matches the whole path
	for path, want := range map[string]bool{
		"/oauth2/token": true, "/OAuth2/Token": true, "/oauth2/token/": true, "/oauth2/token;a=b": true, "/oauth2;a/token": true,
		"/oauth2/tokens": false, "/": false, "/x/oauth2/token": false, "/oauth2/token-x": false, "/index.php/x/oauth2/token": false,
		"/oauth2/token/x": true, "/oauth2/token.json": true, "/oauth2/token%20": true, "/index.php/oauth2/token": true, "/x/index.php/oauth2/token": true, "/oauth2.php/token/x": true,
	} {
		check.Equal(t, path, pattern.MatchString(path), want)
	}
	check.Equal(t, "all else", x.others.GetMatch().GetPrefix(), "/")
	check.Equal(t, filter+" is off for all else", x.others.GetTypedPerFilterConfig()[filter] != nil, true)
	check.Equal(t, filter+" is on for tokens", len(x.token.GetTypedPerFilterConfig()), 0)
	check.Equal(t, "paths are normalized", x.manager.GetNormalizePath().GetValue() && x.manager.GetMergeSlashes(), true)
	check.Equal(t, "addresses of clients are believed from no one", x.manager.GetUseRemoteAddress().GetValue(), true)
}

func TestExampleOfAuthorization(t *testing.T) {
	x := parse(t, "ext_authz.yaml")
	filter, ok := x.filters["envoy.filters.http.ext_authz"].(*extauthzv3.ExtAuthz)
	check.Equal(t, "filter", ok, true)
	x.wantClusters(t, filter.GetGrpcService().GetEnvoyGrpc().GetClusterName(), "envoy.service.auth.v3.Authorization")
	x.wantPaths(t, "envoy.filters.http.ext_authz")
	body := filter.GetWithRequestBody()
	check.Equal(t, "length of the body", body.GetMaxRequestBytes(), gateway.MaxBody)
	check.Equal(t, "all of the body, as it is", body.GetPackAsBytes() && !body.GetAllowPartialMessage() && filter.GetEncodeRawHeaders(), true)
	check.Equal(t, "open while nobody answers", filter.GetFailureModeAllow(), true)
	var fields []string
	for _, p := range filter.GetAllowedHeaders().GetPatterns() {
		fields = append(fields, p.GetExact())
	}
	check.Equal(t, "fields", fields, []string{"authorization", "content-type", "content-encoding", "content-length", "origin"})
	override := &extauthzv3.ExtAuthzPerRoute{}
	unpack(t, x.others.GetTypedPerFilterConfig()["envoy.filters.http.ext_authz"], override)
	check.Equal(t, "off", override.GetDisabled(), true)
}

func TestExampleOfRateLimits(t *testing.T) {
	x := parse(t, "ratelimit.yaml")
	filter, ok := x.filters["envoy.filters.http.ratelimit"].(*filterv3.RateLimit)
	check.Equal(t, "filter", ok, true)
	x.wantClusters(t, filter.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName(), "envoy.service.ratelimit.v3.RateLimitService")
	x.wantPaths(t, "envoy.filters.http.lua")
	check.Equal(t, "open while nobody answers", filter.GetFailureModeDeny(), false)
	limits := x.token.GetRoute().GetRateLimits()
	check.Equal(t, "descriptors", len(limits), 1)
	var keys []string
	for _, a := range limits[0].GetActions() {
		switch {
		case a.GetMetadata() != nil:
			m := a.GetMetadata()
			keys = append(keys, m.GetDescriptorKey())
			script := x.filters["envoy.filters.http.lua"].(*luav3.Lua).GetDefaultSourceCode().GetInlineString()
			sets := `:set("` + m.GetMetadataKey().GetKey() + `", "` + m.GetMetadataKey().GetPath()[0].GetKey() + `", id)`
			check.Equal(t, "the script sets what is read", strings.Contains(script, sets), true)
		case a.GetGenericKey() != nil:
			keys = append(keys, a.GetGenericKey().GetDescriptorKey())
			check.Equal(t, "grant", a.GetGenericKey().GetDescriptorValue(), "client_credentials")
		case a.GetRemoteAddress() != nil:
			keys = append(keys, "remote_address")
		}
	}
	check.Equal(t, "keys that the service reads", keys, []string{envoy.KeyClient, envoy.KeyGrant, envoy.KeyAddress})
	check.Equal(t, "limits of other paths", len(x.others.GetRoute().GetRateLimits()), 0)
}
