package upstream

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
)

// maxResent is the maximum body size of a request that may be sent again.
const maxResent = 64 << 10

// Resender is a Transport that sends a request again if the upstream has closed a persistent
// connection before it received any of the request. The Transport itself does so only for some
// requests without a body. NewResender creates one.
type Resender struct{ *http.Transport }

// NewResender replaces the dial functions of the transport, to track what the upstream has
// received.
func NewResender(t *http.Transport) Resender {
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newSocket(plain), nil
	}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := t.TLSClientConfig.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(address) // the transport always passes host:port
		}
		ctx, cancel := context.WithTimeout(ctx, dialWithin)
		defer cancel()
		s := newSocket(plain)
		if err := s.secure(ctx, config); err != nil {
			return nil, err
		}
		return s, nil
	}
	return Resender{t}
}

// RoundTrip implements [http.RoundTripper].
func (t Resender) RoundTrip(req *http.Request) (*http.Response, error) {
	var used *socket
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if used, _ = c.Conn.(*socket); used != nil && c.Reused {
			used.begin()
		} else {
			used = nil // a new connection cannot have been closed for being idle
		}
	}})
	req = req.WithContext(ctx)
	var body *rewound
	if req.Body != nil && req.ContentLength > 0 && req.ContentLength <= maxResent {
		body = &rewound{rest: req.Body}
		req.Body = body
	}
	for {
		res, err := t.Transport.RoundTrip(req)
		if err == nil && res.StatusCode < http.StatusContinue {
			_ = res.Body.Close() // the answer is dropped
			return nil, errStatus(res)
		}
		if err == nil || used == nil || ctx.Err() != nil || req.Body != nil && body == nil || !used.untouched() {
			return res, err
		}
		if req = req.WithContext(ctx); body != nil {
			body = &rewound{rest: io.MultiReader(bytes.NewReader(body.read.Bytes()), body.rest)}
			req.Body = body
		}
	}
}

// rewound is a body that can be read again from its start. The HTTP server closes the original
// body.
type rewound struct {
	rest io.Reader
	read bytes.Buffer
}

// Read implements [io.Reader].
func (r *rewound) Read(b []byte) (int, error) {
	n, err := r.rest.Read(b)
	r.read.Write(b[:n])
	return n, err
}

// Close implements [io.Closer].
func (r *rewound) Close() error { return nil }
