package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"strings"
	"time"

	"oauth-server/internal/gateway/subject"
)

// forward sends a token request to the upstream and writes the answer to the client. It reads the
// part of the answer that it inspects before it writes anything. So if the answer breaks off, the
// client gets an error instead, and a request that got a token is settled first, which adds fields
// to the header. forward does the work of [httputil.ReverseProxy] for a request and an answer in
// memory.
func (x *tokenCall) forward(w http.ResponseWriter, r *http.Request, body []byte) {
	began := time.Now()
	lasting, end := x.lasting(r.Context())
	defer end()
	res, err := x.g.tokens.Send(lasting, x.g.outgoing(r, body, w))
	if err != nil {
		x.g.exchanged(lasting, true, began, 0, err)
		x.unreachable(w, r, err)
		return
	}
	defer func() { _ = res.Body.Close() }() // read errors were handled
	read, err := receive(res)
	x.g.exchanged(lasting, true, began, res.StatusCode, err)
	if err != nil {
		x.unreachable(w, r, err)
		return
	}
	header := w.Header()
	if _, own := res.Header["X-Request-Id"]; own {
		header.Del("X-Request-Id")
	}
	removeHopByHop(res.Header)
	maps.Copy(header, res.Header)
	announce(header, res.Trailer)
	x.result.status = res.StatusCode
	if success(res.StatusCode) {
		x.result.outcome = Issued
		said := read
		if res.Header.Get("Content-Encoding") != "" {
			said = nil
		}
		x.settle(r.Context(), said)
	}
	x.refusal(read)
	x.letGo(r.Context())
	if r.Context().Err() != nil {
		x.result.outcome = Gone // but its token counts
	}
	w.WriteHeader(res.StatusCode)
	_, err = w.Write(read)
	if err == nil && len(read) > subject.MaxAnswer {
		_, err = io.Copy(w, res.Body)
	}
	if err != nil {
		x.g.wrote(r.Context(), err)
		panic(http.ErrAbortHandler) // the client has only a part of the answer
	}
	for name, values := range res.Trailer {
		header[http.TrailerPrefix+name] = values
	}
}

// mostGone is the maximum number of requests that continue after their clients have hung up. Each
// has a body of up to [MaxBody].
const mostGone = 1024

// lasting returns a context for the exchange with the upstream. It does not end when the client
// hangs up, because a token that the upstream issues must still count. It ends when ctx ends for
// any other reason, or when more than mostGone clients have hung up. The caller calls end.
func (x *tokenCall) lasting(ctx context.Context) (lasting context.Context, end func()) {
	if !x.from.taken {
		return ctx, func() {}
	}
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if x.g.gone.Add(1) > mostGone || !errors.Is(cause, context.Canceled) {
			cancel(cause)
		}
	})
	return lasting, func() {
		if !stop() {
			x.g.gone.Add(-1)
		}
		cancel(nil)
	}
}

// receive reads the body of an answer, up to one byte more than [subject.MaxAnswer].
func receive(res *http.Response) ([]byte, error) {
	var read bytes.Buffer
	if res.ContentLength > 0 {
		read.Grow(int(min(res.ContentLength, subject.MaxAnswer)) + bytes.MinRead)
	}
	if _, err := read.ReadFrom(io.LimitReader(res.Body, subject.MaxAnswer+1)); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return read.Bytes(), nil
}

// outgoing returns the request to send. Interim answers are copied to w, except 100, because the
// body has already been received.
func (g *Gateway) outgoing(r *http.Request, body []byte, w http.ResponseWriter) *http.Request {
	out := r.Clone(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, fields textproto.MIMEHeader) error {
			if status != http.StatusContinue && r.Context().Err() == nil {
				interim(w, status, http.Header(fields))
			}
			return nil
		},
	}))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()
	out.ContentLength, out.TransferEncoding = int64(len(body)), nil
	if len(body) == 0 {
		out.Body = http.NoBody // net/http sends any other empty body as chunked
	}
	out.Close, out.RequestURI, out.Trailer = false, "", nil
	removeHopByHop(out.Header)
	delete(out.Header, "Accept-Encoding") // the gateway reads the answer
	delete(out.Header, "Expect")          // the body was received
	if _, named := out.Header["User-Agent"]; !named {
		out.Header["User-Agent"] = []string{""} // an empty value sends no User-Agent
	}
	g.rewrite(&httputil.ProxyRequest{In: r, Out: out})
	return out
}

// removeHopByHop removes the hop-by-hop fields (RFC 9110 section 7.6.1): the fields that Connection
// lists, and the standard ones.
func removeHopByHop(h http.Header) {
	for _, field := range h["Connection"] {
		for name := range strings.SplitSeq(field, ",") {
			delete(h, http.CanonicalHeaderKey(textproto.TrimString(name)))
		}
	}
	for _, name := range []string{
		"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade",
	} {
		delete(h, name)
	}
}

// success reports whether an answer with this status may contain a token. RFC 6749 section 5.1
// requires 200, but some frameworks answer a POST with another 2xx.
func success(status int) bool { return status/100 == 2 }

// isPage reports whether an answer is an HTML page, such as a maintenance page.
func isPage(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type")) // a malformed type is not a page
	return media == "text/html"
}

// settle counts a request with a successful answer. read is the body read so far, or nil if it is
// unreadable. If the body says that no token was issued, settle only sets the outcome to Failed,
// and end releases the reservation.
func (x *tokenCall) settle(ctx context.Context, read []byte) {
	readable := read != nil && len(read) <= subject.MaxAnswer
	has, failed := subject.HasToken(read)
	if readable && !has && (failed || len(read) == 0 || x.result.status != http.StatusOK || isPage(x.out.Header())) {
		x.result.outcome = Failed
		return
	}
	if x.reservation == nil {
		return
	}
	_ = x.g.guarded(ctx, func(ctx context.Context) error { // the token is issued even if counting fails
		x.count(ctx, read)
		return nil
	})
}
