package envoy

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"oauth-server/internal/gateway"
)

// partialBody is the header in which Envoy reports whether it truncated the body. Envoy sets it
// whenever it buffers the body.
const partialBody = "X-Envoy-Auth-Partial-Body"

// authorization implements the external authorization service.
type authorization struct {
	authv3.UnimplementedAuthorizationServer
	decider *gateway.Decider
}

// Check implements [authv3.AuthorizationServer].
func (s *authorization) Check(ctx context.Context, in *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	asked := in.GetAttributes().GetRequest().GetHttp()
	path, _, _ := strings.Cut(asked.GetPath(), "?")
	call, header := callOf(ctx, asked.GetMethod(), path, asked.GetId()), headerOf(asked)
	if origin := header.Get("Origin"); origin != "" {
		call.Header.Set("Origin", origin)
	}
	answer := s.decider.Ask(call, func() ([]gateway.Question, error) { return s.question(in, header) })
	if answer.Status == http.StatusOK {
		return &authv3.CheckResponse{
			Status: &rpcstatus.Status{Code: int32(codes.OK)},
			HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
				ResponseHeadersToAdd: options(answer.Header, corev3.HeaderValueOption_ADD_IF_ABSENT), // unless the upstream sends its own
			}},
		}, nil
	}
	return &authv3.CheckResponse{
		Status: &rpcstatus.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(answer.Status)}, //nolint:gosec // three digits
			Headers: options(answer.Header, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD), Body: string(answer.Body),
		}},
	}, nil
}

// options returns header options for an answer. List fields are appended to, all others follow how.
func options(h http.Header, how corev3.HeaderValueOption_HeaderAppendAction) (all []*corev3.HeaderValueOption) {
	for name, values := range h {
		how := how
		if name == "Access-Control-Expose-Headers" || name == "Vary" {
			how = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
		}
		for _, value := range values {
			all = append(all, &corev3.HeaderValueOption{
				Header: &corev3.HeaderValue{Key: name, Value: value}, AppendAction: how,
			})
		}
	}
	return all
}

// question reads the token request. It returns no questions if the request is not a token request.
func (s *authorization) question(in *authv3.CheckRequest, header http.Header) ([]gateway.Question, error) {
	asked := in.GetAttributes().GetRequest().GetHttp()
	from := gateway.Question{Remote: addressOf(in.GetAttributes().GetSource().GetAddress())}
	target, err := url.ParseRequestURI(asked.GetPath())
	if err != nil {
		return []gateway.Question{from}, refuse("The path of the request is malformed.")
	}
	body, err := bodyOf(asked, header)
	r := &http.Request{Method: asked.GetMethod(), URL: target, Header: header, ContentLength: int64(len(body))}
	if err != nil {
		r.ContentLength = -1
	}
	if !s.decider.IsToken(r, body) {
		return nil, nil
	}
	if err != nil {
		return []gateway.Question{from}, err
	}
	q, err := gateway.ReadQuestion(header, target.RawQuery, body)
	q.Remote = from.Remote
	return []gateway.Question{q}, err
}

// headerOf returns the header of the request, from either form that Envoy sends: the header map of
// encode_raw_headers, or the plain map, in which repeated fields are joined with commas. Envoy
// always joins repeated Authorization fields. The Authorization of a token request contains no
// comma, so a comma means that there were several fields, which are refused.
func headerOf(asked *authv3.AttributeContext_HttpRequest) http.Header {
	h := http.Header{}
	add := func(name, value string) {
		if http.CanonicalHeaderKey(name) != "Authorization" {
			h.Add(name, value)
			return
		}
		for part := range strings.SplitSeq(value, ",") {
			h.Add(name, part)
		}
	}
	for _, field := range asked.GetHeaderMap().GetHeaders() {
		value := field.GetValue()
		if raw := field.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		add(field.GetKey(), value)
	}
	for name, value := range asked.GetHeaders() {
		add(name, value)
	}
	return h
}

// bodyOf returns the body of the request. The body must be complete and unchanged. Otherwise the
// upstream would read it differently.
func bodyOf(asked *authv3.AttributeContext_HttpRequest, h http.Header) ([]byte, error) {
	body := asked.GetRawBody()
	if text := asked.GetBody(); text != "" {
		if len(body) > 0 || strings.Contains(text, "!") { // Envoy replaces bytes that are not UTF-8 with !
			return nil, refuse("The proxy may have changed the body; it needs pack_as_bytes.")
		}
		body = []byte(text)
	}
	for _, partial := range h[partialBody] {
		if partial != "false" {
			return nil, gateway.ErrTooLarge
		}
	}
	switch {
	case len(body) > gateway.MaxBody:
		return nil, gateway.ErrTooLarge
	case !isWhole(h["Content-Length"], len(body)):
		return nil, refuse("The proxy did not send the whole body; it needs with_request_body.")
	}
	return body, nil
}

// isWhole reports whether all Content-Length values equal the length of the body.
func isWhole(said []string, length int) bool {
	for _, text := range said {
		if n, err := strconv.Atoi(text); err != nil || n != length {
			return false
		}
	}
	return true
}
