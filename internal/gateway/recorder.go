package gateway

import (
	"bytes"
	"context"
	"maps"
	"net/http"

	"oauth-server/internal/gateway/subject"
)

// answer writes the answer of the handler behind a middleware to a token request. It buffers an
// answer with a token until it is read and the request settled, because settling adds fields to the
// header. It writes all other answers directly, and also answers that are too large to read.
type answer struct {
	http.ResponseWriter
	x        *tokenCall
	ctx      context.Context // of the request
	status   int             // 0: none yet
	withheld bool            // the status, header and body are buffered
	header   http.Header     // buffered; later changes of the header are of the trailer
	body     bytes.Buffer
}

// Unwrap gives [http.ResponseController] the underlying writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK && status != http.StatusSwitchingProtocols {
		a.ResponseWriter.WriteHeader(status) // an interim answer, or a superfluous call, which the server logs
		return
	}
	a.status, a.x.result.Status = status, status
	if success(status) { // otherwise Write reads the reason from the body
		a.x.result.Outcome = Issued
		if a.withheld = readable(a.Header()); a.withheld {
			a.header = maps.Clone(a.Header())
			return
		}
		a.x.got(a.ctx, status, nil)
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.withheld && a.body.Len()+len(b) <= subject.MaxAnswer {
		return a.body.Write(b)
	}
	if err := a.release(nil); err != nil {
		return 0, err
	}
	if !success(a.status) && a.x.result.refusal == "" {
		a.x.got(a.ctx, a.status, b)
	}
	return a.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher].
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError implements the flush method that [http.ResponseController] calls. It does not flush a
// buffered answer.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.withheld {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// finish completes the answer after the endpoint has returned.
func (a *answer) finish() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	body := a.body.Bytes()
	if body == nil { // the body is known to be empty
		body = []byte{}
	}
	a.x.g.wrote(a.ctx, a.release(body))
}

// release settles a request with a buffered answer, reads the token from body, and writes the
// answer. A nil body is unreadable.
func (a *answer) release(body []byte) error {
	if !a.withheld {
		return nil
	}
	a.withheld = false
	header := a.Header()
	trailer := maps.Clone(header) // the fields that were added after WriteHeader
	maps.DeleteFunc(trailer, func(name string, _ []string) bool { return a.header[name] != nil })
	clear(header)
	maps.Copy(header, a.header)
	a.x.got(a.ctx, a.status, body)
	a.ResponseWriter.WriteHeader(a.status)
	maps.Copy(header, trailer)
	_, err := a.ResponseWriter.Write(a.body.Bytes())
	return err
}
