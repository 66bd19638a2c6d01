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

// partialBody is the field in which Envoy says whether it has left out a part of the body. It sets it whenever it buffers
// the body.
const partialBody = "X-Envoy-Auth-Partial-Body"

// authorization is the external authorization.
type authorization struct {
	authv3.UnimplementedAuthorizationServer
	judge *gateway.Judge
}

// Check implements [authv3.AuthorizationServer].
func (s *authorization) Check(ctx context.Context, in *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	asked := in.GetAttributes().GetRequest().GetHttp()
	path, _, _ := strings.Cut(asked.GetPath(), "?")
	call, header := callOf(ctx, asked.GetMethod(), path, asked.GetId()), headerOf(asked)
	if origin := header.Get("Origin"); origin != "" {
		call.Header.Set("Origin", origin)
	}
	answer := s.judge.Ask(call, func() ([]gateway.Question, error) { return s.question(in, header) })
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

// options are fields for an answer. Lists are added to.
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

// question reads the token request; none if it is no request of tokens.
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
	if !s.judge.IsToken(r, body) {
		return nil, nil
	}
	if err != nil {
		return []gateway.Question{from}, err
	}
	q, err := gateway.ReadQuestion(header, target.RawQuery, body)
	q.Remote = from.Remote
	return []gateway.Question{q}, err
}

// headerOf is the header of the request, from the form that Envoy sends: that of encode_raw_headers, or the other one, where
// the values of a field that is there twice are joined by commas. Envoy itself joins those of Authorization. That of a token
// request has no comma, so one in it stands for two of them, which are refused.
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

// bodyOf is the body of the request. It must be the whole one, as it is: a part of it, or one in which something was
// replaced, would be read differently by the upstream.
func bodyOf(asked *authv3.AttributeContext_HttpRequest, h http.Header) ([]byte, error) {
	body := asked.GetRawBody()
	if text := asked.GetBody(); text != "" {
		if len(body) > 0 || strings.Contains(text, "!") { // which Envoy puts in place of what is not UTF-8
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
		return nil, refuse("The proxy did not pass on the whole body; it needs with_request_body.")
	}
	return body, nil
}

// isWhole reports whether every length that the request says is that of its body.
func isWhole(said []string, length int) bool {
	for _, text := range said {
		if n, err := strconv.Atoi(text); err != nil || n != length {
			return false
		}
	}
	return true
}
