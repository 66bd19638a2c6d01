package envoy_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/test/bufconn"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/envoy"
)

// TestCallThatDoesNotComeIn checks that a call with a message that is announced but never sent ends
// with DEADLINE_EXCEEDED.
func TestCallThatDoesNotComeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, pipe, ended := envoy.NewServer(newDecider(t), nil), bufconn.Listen(1<<20), make(chan error, 1)
		go func() { ended <- server.Serve(pipe) }()
		c, err := pipe.DialContext(t.Context())
		check.OK(t, err)
		_, err = io.WriteString(c, http2.ClientPreface)
		check.OK(t, err)
		f := http2.NewFramer(c, c)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		check.OK(t, f.WriteSettings())
		var head bytes.Buffer
		e := hpack.NewEncoder(&head)
		for _, field := range [][2]string{
			{":method", "POST"},
			{":scheme", "http"},
			{":path", "/envoy.service.auth.v3.Authorization/Check"},
			{":authority", "judge"},
			{"content-type", "application/grpc"},
			{"te", "trailers"},
		} {
			check.OK(t, e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
		}
		check.OK(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true}))
		check.OK(t, f.WriteData(1, false, []byte{0, 0, 3, 0, 0, 'x'})) // 1 of 196,608 bytes
		status := ""
		for status == "" {
			frame, err := f.ReadFrame()
			var reset http2.StreamError
			if errors.As(err, &reset) {
				continue
			}
			check.OK(t, err)
			switch frame := frame.(type) {
			case *http2.PingFrame:
				if !frame.IsAck() {
					check.OK(t, f.WritePing(true, frame.Data))
				}
			case *http2.MetaHeadersFrame:
				for _, field := range frame.Fields {
					if field.Name == "grpc-status" {
						status = field.Value
					}
				}
			}
		}
		check.Equal(t, "status", status, "4")
		check.OK(t, c.Close())
		check.OK(t, server.Shutdown(t.Context()))
		check.OK(t, <-ended)
	})
}
