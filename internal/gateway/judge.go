package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/grants"
	"oauth-server/internal/judgement"
	"oauth-server/internal/ratelimit"
)

// JudgePath is where [NewJudge] is asked.
const JudgePath = "/judge"

// NewJudge returns what other proxies ask before they forward a token request: 200 lets it pass, 429 is the answer to it.
// It sees no answer of a token endpoint, so a request that may pass counts at once, whatever comes of it. Every caller of
// it can use up the limits of any client; it must not be public. Of the options, those about an upstream, Subjects and Shared
// are ignored.
//
// It is asked by POST or GET, with a question in JSON, as in [question], or with the token request itself: its
// Authorization, Content-Type and body, as far as the proxy has them. In the second case grant_type may be in the query,
// which the proxy writes, for a proxy that passes on no body.
func NewJudge(o Options) (http.Handler, error) {
	o.Shared = nil
	g, err := newGateway(o)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		mux.HandleFunc(method+" "+JudgePath, g.answerQuestion)
	}
	return mux, nil
}

// question is one in JSON.
type question struct {
	ClientID string `json:"client_id"`
	// User is empty if it is not known, or the grant is client_credentials.
	User  string `json:"user"`
	Grant string `json:"grant_type"`
	// Address is where the request comes from. Empty: as the trusted proxies say, like that of any request.
	Address string `json:"address"`
}

func (g *Gateway) answerQuestion(w http.ResponseWriter, r *http.Request) {
	x, r := g.begin(w, r)
	defer func() { x.log(r) }()
	asked, err := x.question(x.out, r)
	if err != nil {
		x.refuse(x.out, r, err)
		return
	}
	if limitable(asked.Key.ClientID) {
		if err := g.guarded(r.Context(), func(ctx context.Context) error { return x.admit(ctx, asked) }); err != nil {
			x.limit(x.out, r, err)
			return
		}
	}
	x.out.WriteHeader(http.StatusOK)
}

// admit counts the request. Its error is *[grants.LimitedError].
func (x *tokenCall) admit(ctx context.Context, asked judgement.Request) error {
	turn := x.g.o.Judge.Admit(ctx, asked)
	fields, err := grants.Limited(asked.Key, &turn.Decision)
	x.out.fields = fields
	return err
}

// question reads what is asked.
func (x *tokenCall) question(w http.ResponseWriter, r *http.Request) (judgement.Request, error) {
	body, err := readBody(w, r)
	if err != nil {
		return judgement.Request{}, err
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" {
		return x.questionInJSON(body)
	}
	if x.said, err = tokenrequest.Read(r.Header, "", body); err != nil {
		return judgement.Request{}, err
	}
	if x.said.Grant == "" {
		x.said.Grant = r.URL.Query().Get("grant_type")
	}
	asked := x.request(r.Context(), x.g.o.Now())
	asked.Unproven = true
	return asked, nil
}

func (x *tokenCall) questionInJSON(body []byte) (judgement.Request, error) {
	var q question
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(&q)
	if _, end := d.Token(); err != nil || !errors.Is(end, io.EOF) {
		return judgement.Request{}, &tokenrequest.Error{Description: "The question must be one JSON object of client_id, user, grant_type and address, all of them text."}
	}
	switch {
	case !subject.Fit(q.ClientID):
		return judgement.Request{}, &tokenrequest.Error{Description: "client_id must be 1 to 255 bytes of text."}
	case q.User != "" && !subject.Fit(q.User):
		return judgement.Request{}, &tokenrequest.Error{Description: "user must be up to 255 bytes of text, and not begin with a space."}
	}
	if q.Address != "" {
		address, err := netip.ParseAddr(q.Address)
		if err != nil {
			return judgement.Request{}, &tokenrequest.Error{Description: "address must be an IP address."}
		}
		x.result.remote = address.Unmap().WithZone("")
	}
	x.said.ClientID, x.said.Grant = q.ClientID, q.Grant
	itself := q.Grant == string(clientcfg.ClientCredentials)
	if itself {
		q.User = ""
	}
	return judgement.Request{
		Key: ratelimit.Key{ClientID: q.ClientID, Username: q.User}, Grant: clientcfg.Grant(q.Grant),
		Remote: x.result.remote, Unproven: true, Unknown: q.User == "" && !itself,
	}, nil
}
