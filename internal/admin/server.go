package admin

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/guard"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/observe/accesslog"
)

// Server serves the API. It is an [http.Handler], safe for concurrent use.
type Server struct {
	o     Options
	guard *guard.Guard
	log   *slog.Logger
	echo  *echo.Echo
	begun time.Time
	look  lastLook

	stored *clientcfg.Directory // with Options.Operator, once read

	unreported       atomic.Bool // the last report could not be encoded
	copying          atomic.Bool // a backup is running
	recordingProfile atomic.Bool
	profiling        context.Context // ends when profiles must end
	endProfiles      context.CancelFunc
	revoking         chan struct{} // holds a value while all families of a user are being revoked
}

// New returns a Server.
func New(o Options) (*Server, error) {
	o.setDefaults()
	s := &Server{o: o, log: slog.New(accesslog.WithRequestID(o.Logger.Handler())), echo: echo.New(), begun: o.Now(), revoking: make(chan struct{}, 1)}
	s.profiling, s.endProfiles = context.WithCancel(context.Background()) //nolint:forbidigo // profiles end with the server
	var err error
	if s.guard, err = guard.New(guard.Options{
		Operator: o.Operator, Issuer: o.Issuer, Tokens: o.Tokens, Users: o.Users, Clients: o.Clients, LocalToken: o.LocalToken, Clock: o.Clock,
	}); err != nil {
		return nil, err
	}
	s.echo.Use(s.around)
	if o.Operator != "" {
		s.serve(adminapi.Prefix, s.registrationRoutes())
	} else {
		s.serve(adminapi.Prefix, s.routes())
		s.serve(ProfilesPath, s.profileRoutes())
	}
	return s, nil
}

// serve registers the routes below a path.
func (s *Server) serve(prefix string, routes []route) {
	for _, r := range routes {
		s.echo.Add(r.method, prefix+r.path, handler(r.answer).echo)
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// answer checks the scope and the query, and runs the operation.
func (r route) answer(c *call) (err error) {
	if err := c.caller.May(r.scope); err != nil {
		return err
	}
	if c.query, err = url.ParseQuery(c.Request().URL.RawQuery); err != nil {
		return problem.Malformed("the query is malformed: %v", err)
	}
	if err := r.doc.checkQuery(c); err != nil {
		return err
	}
	return r.handle(c)
}
