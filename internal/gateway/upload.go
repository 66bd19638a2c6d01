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
	// uploadGrace is how long a body may be waited for beyond what its bytes buy.
	uploadGrace = 30 * time.Second
	// uploadRate is how many bytes buy a second: a body that comes more slowly for long is cut off.
	uploadRate = 250
	// uploadPause is the longest wait for the next bytes of a body.
	uploadPause = time.Minute
)

// upload is the body of a request that is passed on as it comes. It may take any time, as long as bytes come: so a client that
// sends none, or a few now and then, keeps no connection to the upstream. Only the time that is spent waiting for the client
// counts.
type upload struct {
	io.ReadCloser
	control  *http.ResponseController
	grace    time.Duration
	received int64
	waited   time.Duration
	late     atomic.Bool
}

// newUpload bounds the body of a request; nil: it has none.
func (g *Gateway) newUpload(control *http.ResponseController, r *http.Request) *upload {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	u := &upload{ReadCloser: r.Body, control: control, grace: g.uploadGrace}
	u.expect() // also of what the server reads by itself when it answers
	return u
}

// expect sets the deadline for the next bytes.
func (u *upload) expect() {
	_ = u.control.SetReadDeadline(time.Now().Add(patience(u.grace, u.received, u.waited))) // a connection that has none is one of a test
}

// patience is how long to wait for the next bytes.
func patience(grace time.Duration, received int64, waited time.Duration) time.Duration {
	const most = int64(24 * time.Hour / time.Second) // what more bytes buy is not needed
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
