package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/observe/accesslog"
)

// Server answers HTTP requests. It implements [http.Handler], is safe for concurrent use, and need
// not be closed.
type Server struct {
	o   Options
	log *slog.Logger
	// shedLines writes the log lines of requests that are refused under overload.
	shedLines *accesslog.ShedLog
	echo      *echo.Echo
	pages     pageSet
	// base is the issuer's path without a trailing slash, usually empty. url is the issuer without
	// a trailing slash. The addresses of the endpoints begin with it.
	base, url string
	https     bool
	cookie    string
	guard     *http.CrossOriginProtection
	metadata  []byte
	// machine holds the paths that always answer in JSON. shared holds the machine paths that
	// scripts of any website may call.
	machine, shared map[string]bool
}

// New returns a Server. It returns an error if the issuer is invalid.
func New(o Options) (*Server, error) {
	o.setDefaults()
	issuer, err := parseIssuer(o.Issuer)
	if err != nil {
		return nil, err
	}
	s := &Server{
		o: o, log: slog.New(accesslog.WithRequestID(o.Logger.Handler())),
		base: strings.TrimRight(issuer.Path, "/"), url: strings.TrimRight(o.Issuer, "/"),
		https: issuer.Scheme == "https", cookie: "oauth_session",
		guard: http.NewCrossOriginProtection(), machine: map[string]bool{}, shared: map[string]bool{},
	}
	s.shedLines = accesslog.NewShedLog(s.log)
	if s.https {
		s.cookie = "__Host-oauth_session"
	}
	// Behind a proxy that rewrites Host, Origin is still the origin of the issuer.
	if err := s.guard.AddTrustedOrigin(issuer.Scheme + "://" + issuer.Host); err != nil {
		return nil, fmt.Errorf("httpapi: issuer: %w", err)
	}
	if s.pages, err = parsePages(s.base); err != nil {
		return nil, err
	}
	if s.metadata, err = s.encodeMetadata(); err != nil {
		return nil, err
	}
	s.route()
	return s, nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// route registers the handlers. If the issuer has a path, they are served below it, and also at the
// root for proxies that strip the path.
func (s *Server) route() {
	s.echo = echo.New()
	s.echo.Use(s.around)
	s.routeUnder("")
	if s.base != "" {
		s.routeUnder(s.base)
		s.get(s.base, s.page(s.index))
		s.machineRoute(s.get, metadataPath+s.base, s.serveMetadata, true)
	}
	s.machineRoute(s.get, "/healthz", s.healthz, false)
	s.machineRoute(s.get, "/readyz", s.readyz, false)
}

func (s *Server) routeUnder(base string) {
	s.machineRoute(s.post, base+"/token", s.token, true)
	s.machineRoute(s.post, base+"/introspect", s.introspect, false)
	s.machineRoute(s.post, base+"/revoke", s.revoke, true)
	s.machineRoute(s.get, base+metadataPath, s.serveMetadata, true)
	s.machineRoute(s.get, base+"/.well-known/jwks.json", s.serveJWKS, true)

	s.get(base+"/", s.page(s.index))
	s.get(base+"/authorize", s.authorize)
	s.post(base+"/authorize", s.page(s.authorizeByPost))
	s.get(base+"/sign-in", s.signInForm)
	s.post(base+"/sign-in", s.sameOrigin(s.signIn))
	s.post(base+"/sign-out", s.sameOrigin(s.signOut))
	s.post(base+"/consent", s.sameOrigin(s.page(s.consent)))
	s.get(base+consentsPath, s.page(s.consents))
	s.post(base+withdrawPath, s.sameOrigin(s.withdraw))
	s.get(base+rateLimitsPath, s.rateLimitsPage)
	s.get(base+stylePath, s.serveAsset(style, "text/css; charset=utf-8"))
	s.get(base+iconPath, s.serveAsset(icon, "image/svg+xml"))
}

func (s *Server) machineRoute(add func(string, handler), path string, h handler, shared bool) {
	s.machine[path] = true
	s.shared[path] = shared
	add(path, h)
}

func (s *Server) get(path string, h handler) {
	s.echo.GET(path, h.echo)
	s.echo.HEAD(path, h.echo)
}

func (s *Server) post(path string, h handler) { s.echo.POST(path, h.echo) }
