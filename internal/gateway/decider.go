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

// DecidePath is the path at which a proxy asks a [Decider] with the token request itself. QuestionPath
// is the path for a question in JSON. They are separate because a proxy passes on types and bodies
// from clients, and a JSON question may set the user and the address.
const (
	DecidePath   = "/judge"
	QuestionPath = DecidePath + "/question"
)

// Decider tells other proxies whether they may forward a token request. It does not see the answer of
// the token endpoint, so an allowed request counts at once, whatever the answer is. Every caller
// can use up the limits of any client, so it must not be public. It is safe for concurrent use.
//
// Over HTTP, see [Decider.ServeHTTP], 200 lets the request pass, and a 429 is the answer to send to
// the client. Package envoy implements the Envoy protocols with [Decider.Ask].
type Decider struct {
	g   *Gateway
	mux *http.ServeMux
}

// NewDecider returns a Decider. It ignores Subjects, Shared and the options about the upstream.
// TokenPaths may be empty, see [Decider.IsToken]. Its error joins all invalid options.
func NewDecider(o Options) (*Decider, error) {
	g, err := newGateway(o)
	if err != nil {
		return nil, err
	}
	if len(o.TokenPaths) > 0 {
		if g.paths, err = patterns(o.TokenPaths); err != nil {
			return nil, err
		}
	}
	d := &Decider{g: g, mux: http.NewServeMux()}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		d.mux.HandleFunc(method+" "+DecidePath, d.answer(readRequest))
	}
	d.mux.HandleFunc(http.MethodPost+" "+QuestionPath, d.answer(readQuestion))
	return d, nil
}

// Stats returns the counters of the Decider.
func (d *Decider) Stats() Stats { return d.g.Stats() }

// ServeHTTP answers questions about one token request. At [DecidePath], the proxy sends the token
// request itself by POST or GET: the Authorization, Content-Type and body that it has. A proxy that
// does not pass on the body can set grant_type in the query. At [QuestionPath], the proxy posts a
// question in JSON, see [question].
func (d *Decider) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// answer returns a handler that answers the question that read parses from a request and its body.
func (d *Decider) answer(read func(*http.Request, []byte) (Question, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x, r := d.g.begin(w, r)
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

// question is the JSON form of a [Question].
type question struct {
	ClientID string `json:"client_id"`
	// User is empty if it is unknown, or if the grant is client_credentials.
	User  string `json:"user"`
	Grant string `json:"grant_type"`
	// Address is the client address. Empty: the address from the trusted proxies, as for any
	// request.
	Address string `json:"address"`
}

// readRequest reads the question of a token request. Proxies such as Traefik write the URL into
// X-Forwarded-Uri. Its query can only cause a refusal and sets nothing else, because the client may
// have written the field itself.
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
		return Question{}, &tokenrequest.Error{Description: "The body must be a JSON object with client_id, user, grant_type and address as strings."}
	}
	q := Question{ClientID: in.ClientID, User: in.User, Grant: in.Grant, Hits: 1}
	if in.Address != "" {
		if q.Remote, err = ParseAddress(in.Address); err != nil {
			return Question{}, err
		}
	}
	return q, q.Check()
}

// ParseAddress parses a client address. Its error is a [tokenrequest.Error].
func ParseAddress(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, &tokenrequest.Error{Description: "address must be an IP address."}
	}
	return address.Unmap().WithZone(""), nil
}

// answer answers the questions that read returns, and logs the call. A panic in read counts as a
// defect of the gateway. It returns the questions, or nil if read failed. In that case read may
// still return questions for the log. If read returns no questions, the request is not a token
// request: it passes, and is neither counted nor logged.
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
	defer func() { x.conclude(r) }()
	switch {
	case unreadable != nil:
		x.noteQuestion(asked)
		x.refuse(x.out, r, unreadable)
		return nil
	case err != nil:
		x.limit(x.out, r, err)
	default:
		x.result.Outcome = Passed
		x.out.WriteHeader(http.StatusOK)
	}
	return asked
}
