package app

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// partingTime is how long a stopping server waits for its peers to hear that
// it stops. A connection that is quiet for longer hardly carries a request in
// the very moment in which it is closed.
const partingTime = 250 * time.Millisecond

// farewell takes leave of kept connections. [http.Server.Shutdown] closes idle
// ones at once, and a request that is just on its way then fails; clients do not
// repeat it by themselves either, since it is a POST. So a stopping server goes on
// for a moment on the connections that it has, and says with each answer that
// it was the last one.
type farewell struct {
	begun atomic.Bool
	open  atomic.Int64 // connections
	wait  time.Duration

	mu    sync.Mutex
	fresh map[net.Conn]struct{} // on which no request has come yet
}

// around marks the answers of a stopping server.
func (f *farewell) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.begun.Load() {
			w.Header().Set("Connection", "close") // in HTTP/2 this becomes GOAWAY
		}
		next.ServeHTTP(w, r)
	})
}

// count is a [http.Server.ConnState].
func (f *farewell) count(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.fresh, c)
	switch state {
	case http.StateNew:
		f.open.Add(1)
		if f.fresh == nil {
			f.fresh = map[net.Conn]struct{}{}
		}
		f.fresh[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		f.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// say returns when nobody is left or the time is over.
func (f *farewell) say(ctx context.Context) {
	over := time.After(f.wait)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for f.open.Load() > 0 {
		select {
		case <-look.C:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// dismiss closes the connections on which no request has come yet. Clients and
// proxies open some ahead of need, and [http.Server.Shutdown] would wait five
// seconds for each.
func (f *farewell) dismiss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.fresh {
		_ = c.Close() // the server notices
	}
}
