package gateway

import (
	"net/http"
	"time"
)

// writeTimeout is how long a client may take to read what is written at once, which is no more than the answer to a token
// request, or 32 KiB of another one.
const writeTimeout = time.Minute

// downstream writes an answer to a client. Each write is bounded in time, so that a client that does not read keeps no
// connection for long. Between writes there is no deadline: streams may pause, and connections that become WebSockets have
// none.
type downstream struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	request *http.Request // as it came
	started time.Time
	upload  *upload // nil: the request has no body
}

func (g *Gateway) newDownstream(w http.ResponseWriter, r *http.Request) *downstream {
	d := &downstream{ResponseWriter: w, control: http.NewResponseController(w), within: g.writeWithin, request: r, started: time.Now()}
	d.upload = g.newUpload(d.control, r)
	if r.ProtoMajor == 1 && r.Header["Expect"] != nil { // whose interim answer the server writes when the body is first read
		d.setDeadline(d.started.Add(d.within))
		return d
	}
	d.setDeadline(time.Time{}) // without that of the last write of the request before
	return d
}

// bounded sets the deadline for a write, and returns what clears it.
func (d *downstream) bounded() func() {
	d.setDeadline(time.Now().Add(d.within))
	return func() { d.setDeadline(time.Time{}) }
}

func (d *downstream) setDeadline(t time.Time) {
	_ = d.control.SetWriteDeadline(t) // a connection that has none is one of a test, or a WebSocket by now
}

// end bounds what the server writes after the handler.
func (d *downstream) end() { d.setDeadline(time.Now().Add(d.within)) }

// WriteHeader implements [http.ResponseWriter].
func (d *downstream) WriteHeader(status int) {
	switch header := d.Header(); {
	case status < http.StatusOK && !d.request.ProtoAtLeast(1, 1): // which knows no interim answers
		return
	case status < http.StatusOK: // an interim answer, which is written at once
		defer d.bounded()()
	case header["Content-Type"] == nil:
		header["Content-Type"] = nil // or net/http guesses one
	}
	d.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (d *downstream) Write(b []byte) (int, error) {
	defer d.bounded()()
	return d.ResponseWriter.Write(b)
}

// FlushError is what [http.ResponseController] calls.
func (d *downstream) FlushError() error {
	defer d.bounded()()
	return d.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (d *downstream) Unwrap() http.ResponseWriter { return d.ResponseWriter }
