package gateway

import (
	"net/http"
	"time"
)

// writeTimeout bounds each write to a client. One write is at most the answer to a token request,
// or 32 KiB of another answer.
const writeTimeout = time.Minute

// downstream writes an answer to a client. Each write has a deadline, so a client that does not
// read cannot hold a connection for long. There is no deadline between writes, because streams may
// pause and connections may become WebSockets.
type downstream struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	request *http.Request // as received
	started time.Time
	upload  *upload // nil: the request has no body that is forwarded as it arrives
}

func (g *Gateway) newDownstream(w http.ResponseWriter, r *http.Request) *downstream {
	d := &downstream{ResponseWriter: w, control: http.NewResponseController(w), within: g.writeWithin, request: r, started: time.Now()}
	if r.ProtoMajor == 1 && r.Header["Expect"] != nil { // the server writes the interim answer when the body is first read
		d.setDeadline(d.started.Add(d.within))
		return d
	}
	d.setDeadline(time.Time{}) // clears the deadline of the previous request's last write
	return d
}

// bounded sets the deadline for a write. The caller calls the returned function to clear it.
func (d *downstream) bounded() func() {
	d.setDeadline(time.Now().Add(d.within))
	return func() { d.setDeadline(time.Time{}) }
}

func (d *downstream) setDeadline(t time.Time) {
	_ = d.control.SetWriteDeadline(t) // fails only in tests, and on connections that became WebSockets
}

// end sets the deadline for the data that the server writes after the handler returns.
func (d *downstream) end() { d.setDeadline(time.Now().Add(d.within)) }

// WriteHeader implements [http.ResponseWriter].
func (d *downstream) WriteHeader(status int) {
	switch header := d.Header(); {
	case status < http.StatusOK && !d.request.ProtoAtLeast(1, 1): // HTTP/1.0 has no interim answers
		return
	case status < http.StatusOK: // interim answers are written at once
		defer d.bounded()()
	case header["Content-Type"] == nil:
		header["Content-Type"] = nil // or net/http guesses a type
	}
	d.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (d *downstream) Write(b []byte) (int, error) {
	defer d.bounded()()
	return d.ResponseWriter.Write(b)
}

// FlushError implements the flush method that [http.ResponseController] calls.
func (d *downstream) FlushError() error {
	defer d.bounded()()
	return d.control.Flush()
}

// Unwrap gives [http.ResponseController] the underlying writer.
func (d *downstream) Unwrap() http.ResponseWriter { return d.ResponseWriter }
