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
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/upstream"
)

// forward sends a token request to the upstream and writes the answer. It reads the part of the
// answer that the gateway inspects before it writes anything. So if the answer breaks off, forward
// returns an error and the client gets another answer.
func (x *tokenCall) forward(w http.ResponseWriter, r *http.Request, body []byte) error {
	ctx := context.WithoutCancel(r.Context()) // an answer counts even if the client has gone
	began, status, read := time.Now(), 0, []byte(nil)
	res, err := x.g.tokens.Send(r.Context(), x.outgoing(w, r, body))
	if err == nil {
		defer func() { _ = res.Body.Close() }() // read errors are handled
		status = res.StatusCode
		read, err = receive(res)
	}
	x.g.exchanged(ctx, true, began, status, err)
	if err != nil {
		return err
	}
	x.gone = r.Context().Err() != nil
	removeHopByHop(res.Header)
	if len(res.Trailer) > 0 {
		res.Header["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(res.Trailer)), ", ")}
	}
	maps.Copy(w.Header(), res.Header)
	x.got(ctx, status, read)
	w.WriteHeader(status)
	if len(read) > 0 { // a 204 has no body, and HTTP/2 accepts none, not even an empty one
		_, err = w.Write(read)
	}
	if err == nil && len(read) > subject.MaxAnswer {
		_, err = io.Copy(w, res.Body)
	}
	if err != nil {
		x.g.wrote(ctx, err)
		panic(http.ErrAbortHandler) // the client has only a part of the answer
	}
	maps.Copy(w.Header(), res.Trailer)
	return nil
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
func (x *tokenCall) outgoing(w http.ResponseWriter, r *http.Request, body []byte) *upstream.Request {
	g := x.g
	to := *r.URL
	to.Scheme = g.o.Upstream.Scheme
	keepTarget(&to, r)
	header := maps.Clone(r.Header)
	removeHopByHop(header)
	delete(header, "Accept-Encoding") // the gateway reads the answer
	delete(header, "Expect")          // the body was received
	client, proxied := g.o.ClientAddr(r)
	out := &upstream.Request{
		Method: r.Method, Target: to.RequestURI(), Host: g.setOrigin(header, client, proxied), Header: header, Body: body,
		Outlives: x.outlives,
	}
	out.Interim = func(status int, fields http.Header) {
		if status != http.StatusContinue {
			interim(w, status, fields)
		}
	}
	return out
}

// interim writes an interim answer of the upstream (RFC 9110 section 15.2). Its fields are kept
// apart from the fields of the final answer.
func interim(w http.ResponseWriter, status int, fields http.Header) {
	header := w.Header()
	final := maps.Clone(header)
	clear(header)
	removeHopByHop(fields)
	maps.Copy(header, fields)
	w.WriteHeader(status)
	clear(header)
	maps.Copy(header, final)
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

// mostGone is the maximum number of requests that continue after their clients have hung up. Each
// has a body of up to [MaxBody].
const mostGone = 1024

// outlives reports whether the exchange with the upstream continues although the context of the
// client has ended. It does after a client has hung up, because a token that the upstream issues must
// still count, but at most for mostGone clients.
func (x *tokenCall) outlives(cause error) bool {
	if !errors.Is(cause, context.Canceled) || !x.lasts.CompareAndSwap(0, 1) {
		return false
	}
	return x.g.gone.Add(1) <= mostGone
}

// over is called when the request is over. It can no longer outlive its client.
func (x *tokenCall) over() {
	if x.lasts.Swap(-1) == 1 {
		x.g.gone.Add(-1)
	}
}

// lasting returns a context for the handler behind a middleware. It ends with ctx, unless the
// request outlives its client. The caller calls end.
func (x *tokenCall) lasting(ctx context.Context) (lasting context.Context, end func()) {
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !x.outlives(cause) {
			cancel(cause)
		}
	})
	return lasting, func() {
		stop()
		cancel(nil)
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

// got counts a request with an answer, before the answer is written. The header of the answer is set.
// body is nil if it is unreadable.
func (x *tokenCall) got(ctx context.Context, status int, body []byte) {
	x.result.Status = status
	if success(status) {
		x.result.Outcome = Issued
		if !readable(x.out.Header()) || len(body) > subject.MaxAnswer {
			body = nil
		}
		x.settle(ctx, body)
	} else {
		said := x.g.reader.Read(body)
		x.refused(&said)
	}
	x.letGo(ctx)
}

// readable reports whether a [subject.Reader] can read the body of an answer, judging by the header.
func readable(header http.Header) bool {
	size, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	return (err != nil || size <= subject.MaxAnswer) && header.Get("Content-Encoding") == ""
}

// settle counts a request with a successful answer. body is nil if it is unreadable. If the body
// says that no token was issued, settle only records the error, and letGo releases the reservation.
func (x *tokenCall) settle(ctx context.Context, body []byte) {
	_ = x.g.guarded(ctx, func(ctx context.Context) error { // the client gets its answer even if this fails
		a := x.g.reader.Read(body)
		switch {
		case body != nil && !a.Issued && (a.Failed || len(body) == 0 || x.result.Status != http.StatusOK || isPage(x.out.Header())):
			x.result.Outcome = Failed
			x.refused(&a)
		case x.reservation != nil:
			x.count(ctx, &a)
		}
		return nil
	})
}
