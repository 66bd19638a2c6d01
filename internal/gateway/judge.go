package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"oauth-server/internal/gateway/tokenrequest"
)

// JudgePath is where a [Judge] is asked over HTTP with a token request, and QuestionPath with a question in JSON. They are
// apart because a proxy passes on types and bodies as clients send them, and a question may name the user and the address.
const (
	JudgePath    = "/judge"
	QuestionPath = JudgePath + "/question"
)

// Judge answers what other proxies ask before they forward a token request. It sees no answer of a token endpoint, so a
// request that may pass counts at once, whatever comes of it. Every caller of it can use up the limits of any client; it
// must not be public. It is safe for concurrent use.
//
// Over HTTP, see [Judge.ServeHTTP], 200 lets the request pass, and 429 is the answer to it. Package envoy has it speak the
// protocols of Envoy, with [Judge.Ask].
type Judge struct {
	g   *Gateway
	mux *http.ServeMux
}

// NewJudge makes a Judge. Of the options, those about an upstream, Subjects and Shared are ignored; TokenPaths may be
// empty, see [Judge.IsToken]. Its error joins everything that is wrong with the options.
func NewJudge(o Options) (*Judge, error) {
	o.Shared = nil
	g, err := newGateway(o)
	if err != nil {
		return nil, err
	}
	if len(o.TokenPaths) > 0 {
		if g.paths, err = patterns(o.TokenPaths); err != nil {
			return nil, err
		}
	}
	j := &Judge{g: g, mux: http.NewServeMux()}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		j.mux.HandleFunc(method+" "+JudgePath, j.answer(readRequest))
	}
	j.mux.HandleFunc(http.MethodPost+" "+QuestionPath, j.answer(readQuestion))
	return j, nil
}

// Stats returns what the judge has done.
func (j *Judge) Stats() Stats { return j.g.Stats() }

// ServeHTTP answers at [JudgePath], by POST or GET, for the token request itself: its Authorization, Content-Type and body, as
// far as the proxy has them; grant_type may be in the query, which the proxy writes, for a proxy that passes on no body.
// At [QuestionPath] it is asked by POST with a question in JSON, as in [question].
func (j *Judge) ServeHTTP(w http.ResponseWriter, r *http.Request) { j.mux.ServeHTTP(w, r) }

// answer is the handler of questions that read reads from a request and its body.
func (j *Judge) answer(read func(*http.Request, []byte) (Question, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x, r := j.g.begin(w, r)
		x.answer(r, func() ([]Question, error) {
			body, err := x.readBody(x.out, r)
			if err != nil {
				return nil, err
			}
			q, err := read(r, body)
			if !q.Remote.IsValid() {
				q.Remote = x.result.remote
			}
			return []Question{q}, err
		})
	}
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

// readRequest reads the question of a token request, whose URL proxies such as Traefik write into X-Forwarded-Uri. Of that the
// query is looked at, which can have the request refused and nothing else: the field may be the client's own.
func readRequest(r *http.Request, body []byte) (Question, error) {
	_, query, _ := strings.Cut(r.Header.Get("X-Forwarded-Uri"), "?")
	q, err := ReadQuestion(r.Header, query, body)
	if err == nil && q.Grant == "" {
		q.Grant = r.URL.Query().Get("grant_type")
	}
	return q, err
}

// readQuestion reads a question in JSON.
func readQuestion(_ *http.Request, body []byte) (Question, error) {
	var in question
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(&in)
	if _, end := d.Token(); err != nil || !errors.Is(end, io.EOF) {
		return Question{}, &tokenrequest.Error{Description: "The question must be one JSON object of client_id, user, grant_type and address, all of them text."}
	}
	q := Question{ClientID: in.ClientID, User: in.User, Grant: in.Grant, Hits: 1}
	if in.Address != "" {
		if q.Remote, err = ParseAddress(in.Address); err != nil {
			return Question{}, err
		}
	}
	return q, q.Check()
}

// ParseAddress reads the address that a request comes from. Its error is a [tokenrequest.Error].
func ParseAddress(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, &tokenrequest.Error{Description: "address must be an IP address."}
	}
	return address.Unmap().WithZone(""), nil
}

// answer answers what read returns, and ends the call. Whatever read fails on with a panic is a defect of the judgement.
// It returns the questions, unless they could not be read; of these, read returns what it has, for the log. If there are
// none, the request is not one of tokens: it passes, and is neither counted nor logged.
func (x *tokenCall) answer(r *http.Request, read func() ([]Question, error)) (asked []Question) {
	var unreadable error
	err := x.g.guarded(r.Context(), func(ctx context.Context) (err error) {
		if asked, unreadable = read(); unreadable == nil && len(asked) > 0 {
			err = x.admit(ctx, asked)
		}
		return err
	})
	if err == nil && unreadable == nil && len(asked) == 0 {
		x.out.WriteHeader(http.StatusOK)
		return nil
	}
	defer func() { x.judged(r) }()
	switch {
	case unreadable != nil:
		x.noteQuestion(asked)
		x.refuse(x.out, r, unreadable)
		return nil
	case err != nil:
		x.limit(x.out, r, err)
	default:
		x.result.outcome = Passed
		x.out.WriteHeader(http.StatusOK)
	}
	return asked
}

// judged counts a request whose answer is all that the judge sees of it, and writes its line.
func (x *tokenCall) judged(r *http.Request) {
	x.g.counts.requests[x.result.outcome].Add(1)
	x.log(r)
	x.g.o.Answered(r.Context(), x.summary())
}
