package adminclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// InProcess returns a client of an API in this process. It sends no token.
func InProcess(api http.Handler) *Client {
	return &Client{
		Server: "http://127.0.0.1", HTTP: &http.Client{Transport: inProcess{api}},
		Token: func(context.Context, string, string) (string, error) { return "", nil },
	}
}

// inProcess is a transport that calls a handler.
type inProcess struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := answer{header: http.Header{}, status: http.StatusOK}
	t.ServeHTTP(&w, r)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header, Body: io.NopCloser(&w.body), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// answer is the response of a handler.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *answer) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *answer) WriteHeader(status int) { w.status = status }

// Write implements [http.ResponseWriter].
func (w *answer) Write(p []byte) (int, error) { return w.body.Write(p) }
