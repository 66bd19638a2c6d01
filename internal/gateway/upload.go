package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

const (
	// uploadGrace is how long to wait for a body in addition to the time that its bytes earn.
	uploadGrace = 30 * time.Second
	// uploadRate is the number of bytes that earn one second. A body that stays slower than that is
	// cut off.
	uploadRate = 250
	// uploadPause is the longest wait for the next bytes of a body.
	uploadPause = time.Minute
)

// upload is a request body that is forwarded as it arrives. It may take any time as long as bytes
// arrive. A client that sends nothing, or a few bytes now and then, cannot hold a connection to the
// upstream. Only the time spent waiting for the client counts.
type upload struct {
	io.ReadCloser
	control  *http.ResponseController
	grace    time.Duration
	received int64
	waited   time.Duration
	late     atomic.Bool
}

// bound replaces the body of a request by an upload. It returns nil if there is no body.
func (g *Gateway) bound(control *http.ResponseController, r *http.Request) *upload {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	u := &upload{ReadCloser: r.Body, control: control, grace: g.uploadGrace}
	r.Body = u
	u.expect() // also bounds the data that the server reads itself when it answers
	return u
}

// expect sets the deadline for the next bytes.
func (u *upload) expect() {
	_ = u.control.SetReadDeadline(time.Now().Add(patience(u.grace, u.received, u.waited))) // fails only in tests
}

// patience returns how long to wait for the next bytes.
func patience(grace time.Duration, received int64, waited time.Duration) time.Duration {
	const most = int64(24 * time.Hour / time.Second) // avoids an overflow
	bought := time.Duration(min(received/uploadRate, most)) * time.Second
	return max(min(grace+bought-waited, uploadPause), 0)
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (int, error) {
	u.expect()
	began := time.Now()
	n, err := u.ReadCloser.Read(p)
	u.waited += time.Since(began)
	u.received += int64(n)
	switch {
	case errors.Is(err, io.EOF): // the server now waits for the client to hang up, however long the answer takes
		_ = u.control.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.late.Store(true)
	}
	return n, err
}
