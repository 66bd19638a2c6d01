package admin

import (
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"time"

	"oauth-server/internal/admin/problem"
)

// ProfilesPath is the prefix of the profiles, as in net/http/pprof. That package is not used,
// because it also shows the command line, which may contain secrets.
const ProfilesPath = "/debug/pprof/"

const (
	maxProfileSeconds = 60
	// profileWritten bounds the time to send a profile.
	profileWritten = 30 * time.Second
)

// profileRoutes returns the routes of the profiles of this process. The OpenAPI document omits them,
// as it omits /metrics: they are for the tools of Go.
func (s *Server) profileRoutes() []route {
	routes := []route{
		s.recording("profile", 30, pprof.StartCPUProfile, pprof.StopCPUProfile),
		s.recording("trace", 1, trace.Start, trace.Stop),
	}
	for _, name := range []string{"allocs", "goroutine", "heap"} {
		routes = append(routes, route{http.MethodGet, name, writeRegistrations, func(c *call) error {
			debug, err := c.numberFrom("debug", 0, 2, 0)
			if err != nil {
				return err
			}
			media := "application/octet-stream"
			if debug > 0 {
				media = "text/plain; charset=utf-8"
			}
			c.Response().Header().Set("Content-Type", media)
			return pprof.Lookup(name).WriteTo(c.Response(), int(debug))
		}, operation{parameters: []string{"debug"}}})
	}
	return routes
}

// EndProfiles ends the profile that is being recorded, so its reader gets the part up to now, and a
// stop of the server does not wait for the rest. Later ones end at once.
func (s *Server) EndProfiles() { s.endProfiles() }

// recording returns the route of a profile over some seconds. There is one at a time.
func (s *Server) recording(name string, usual int64, start func(io.Writer) error, stop func()) route {
	return route{http.MethodGet, name, writeRegistrations, func(c *call) error {
		seconds, err := c.number("seconds", maxProfileSeconds, usual)
		if err != nil {
			return err
		}
		if !s.recordingProfile.CompareAndSwap(false, true) {
			return problem.Conflict("another profile is being recorded")
		}
		defer s.recordingProfile.Store(false)
		took := time.Duration(seconds) * time.Second
		if err := http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(took + profileWritten)); err != nil {
			return err
		}
		c.Response().Header().Set("Content-Type", "application/octet-stream")
		if err := start(c.Response()); err != nil {
			return err
		}
		defer stop()
		select {
		case <-time.After(took):
		case <-c.Request().Context().Done():
		case <-s.profiling.Done():
		}
		return nil
	}, operation{parameters: []string{"seconds"}}}
}
