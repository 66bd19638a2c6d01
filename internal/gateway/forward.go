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
	"slices"
	"strings"
	"time"

	"oauth-server/internal/gateway/subject"
)

// forward sends a token request to the upstream and writes the answer. It reads the part of the
// answer that the gateway inspects before it writes anything. So if the answer breaks off, forward
// returns an error and the client gets another answer. Once the request is sent, only ctx can stop
// it. forward does the work of [httputil.ReverseProxy] for a request and an answer in memory.
func (x *tokenCall) forward(ctx context.Context, w *answer, r *http.Request, body []byte) error {
	began, status, read := time.Now(), 0, []byte(nil)
	res, err := x.g.tokens.Send(r.Context(), x.g.outgoing(ctx, w, r, body)) // until it is written
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
	w.WriteHeader(status)
	_, err = w.Write(read)
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
func (g *Gateway) outgoing(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte) *http.Request {
	out := r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(status int, fields textproto.MIMEHeader) error {
			if status != http.StatusContinue {
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

// success reports whether an answer with this status may contain a token. RFC 6749 section 5.1
// requires 200, but some frameworks answer a POST with another 2xx.
func success(status int) bool { return status/100 == 2 }

// isPage reports whether an answer is an HTML page, such as a maintenance page.
func isPage(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type")) // a malformed type is not a page
	return media == "text/html"
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
