package admin

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
)

// Server serves the API. It is an [http.Handler], safe for concurrent use.
type Server struct {
	o     Options
	guard *guard
	log   *slog.Logger
	echo  *echo.Echo
	begun time.Time
	look  lastLook

	stored *clientcfg.Directory // with Options.Operator, once read

	unreported atomic.Bool   // the last report could not be encoded
	copying    atomic.Bool   // a backup is running
	revoking   chan struct{} // holds a value while all families of a user are being revoked
}

// New returns a Server. The error joins all problems with the options.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.setDefaults()
	s := &Server{o: o, log: slog.New(accesslog.WithRequestID(o.Logger.Handler())), echo: echo.New(), begun: o.Now(), revoking: make(chan struct{}, 1)}
	var err error
	if s.guard, err = newGuard(&s.o); err != nil {
		return nil, err
	}
	s.echo.Use(s.around)
	routes := s.routes()
	if o.Operator != "" {
		routes = s.registrationRoutes()
	}
	for _, r := range routes {
		s.echo.Add(r.method, adminapi.Prefix+r.path, handler(r.answer).echo)
	}
	return s, nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// route is one operation of the API.
type route struct {
	method, path string // path in echo's notation, below adminapi.Prefix
	scope        string
	handle       handler
}

const (
	read  = clientcfg.ScopeLimitsRead
	write = clientcfg.ScopeLimitsWrite

	readRegistrations  = clientcfg.ScopeRegistrationsRead
	writeRegistrations = clientcfg.ScopeRegistrationsWrite
)

func (s *Server) routes() []route {
	return slices.Concat(s.registrationRoutes(), s.tierRoutes(), s.banRoutes(), []route{
		{http.MethodGet, "/settings", read, s.onSettings(s.get)},
		{http.MethodPut, "/settings", write, s.onSettings(s.put)},
		{http.MethodPatch, "/settings", write, s.onSettings(s.patch)},
		{http.MethodDelete, "/settings", write, s.onSettings(s.remove)},
		{http.MethodGet, "/policies", read, s.listPolicies},
		{http.MethodGet, "/policies/:client_id", read, s.onPolicy(s.get)},
		{http.MethodPut, "/policies/:client_id", write, s.onPolicy(s.put)},
		{http.MethodPatch, "/policies/:client_id", write, s.onPolicy(s.patch)},
		{http.MethodDelete, "/policies/:client_id", write, s.onPolicy(s.remove)},
		{http.MethodGet, "/candidates", read, s.listCandidates},
		{http.MethodGet, "/candidates/:client_id", read, s.onCandidate(s.get)},
		{http.MethodPut, "/candidates/:client_id", write, s.onCandidate(s.put)},
		{http.MethodPatch, "/candidates/:client_id", write, s.onCandidate(s.patch)},
		{http.MethodDelete, "/candidates/:client_id", write, s.onCandidate(s.remove)},
		{http.MethodPost, "/candidates/:client_id/promote", write, s.onCandidate(s.promote)},
		{http.MethodGet, "/unregistered", read, s.listUnregistered},
		{http.MethodGet, "/clients/:client_id/counters", read, s.showCounters},
		{http.MethodDelete, "/clients/:client_id/counters", write, s.resetCounters},
		{http.MethodGet, "/top", read, s.top},
		{http.MethodGet, "/user-hash", read, s.userHash},
		{http.MethodGet, "/changes", read, s.listChanges},
		{http.MethodPost, "/changes", write, s.makeChanges},
		{http.MethodPost, "/changes/:version/undo", write, s.undo},
		{http.MethodGet, "/audit", read, s.audit},
		{http.MethodGet, "/instances", read, s.instances},
		{http.MethodGet, "/backup", writeRegistrations, s.backup},
		{http.MethodPost, "/restore", writeRegistrations, s.restore},
		{http.MethodGet, "/openapi.json", read, s.openAPI},
	})
}

// registrationRoutes returns the routes for clients, users and their sign-ins.
func (s *Server) registrationRoutes() []route {
	return []route{
		{http.MethodGet, "/clients", read, s.listClients},
		{http.MethodPost, "/clients", writeRegistrations, s.createClient},
		{http.MethodGet, "/clients/:client_id", readRegistrations, s.onClient(s.showRegistration)},
		{http.MethodPut, "/clients/:client_id", writeRegistrations, s.onClient(s.putRegistration)},
		{http.MethodPatch, "/clients/:client_id", writeRegistrations, s.onClient(s.patchRegistration)},
		{http.MethodDelete, "/clients/:client_id", writeRegistrations, s.onClient(s.deleteClient)},
		{http.MethodGet, "/clients/:client_id/limits", readRegistrations, s.onClient(s.listLimits)},
		{http.MethodPost, "/clients/:client_id/revoke", writeRegistrations, s.onClient(s.revokeClient)},
		{http.MethodGet, "/clients/:client_id/secrets", readRegistrations, s.onClient(s.listSecrets)},
		{http.MethodPost, "/clients/:client_id/secrets", writeRegistrations, s.onClient(s.addSecret)},
		{http.MethodDelete, "/clients/:client_id/secrets/:id", writeRegistrations, s.onClient(s.retireSecret)},
		{http.MethodGet, "/users", readRegistrations, s.listUsers},
		{http.MethodPost, "/users", writeRegistrations, s.createUser},
		{http.MethodGet, "/users/:username", readRegistrations, s.onUser(s.showUser)},
		{http.MethodPatch, "/users/:username", writeRegistrations, s.onUser(s.patchUser)},
		{http.MethodDelete, "/users/:username", writeRegistrations, s.onUser(s.deleteUser)},
		{http.MethodPut, "/users/:username/password", writeRegistrations, s.onUser(s.setPassword)},
		{http.MethodPost, "/users/:username/revoke", writeRegistrations, s.onUser(s.revokeUser)},
		{http.MethodPost, "/users/:username/unlock", writeRegistrations, s.onUser(s.unlockUser)},
		{http.MethodGet, "/users/:username/sessions", readRegistrations, s.onUser(s.listSessions)},
		{http.MethodDelete, "/users/:username/sessions", writeRegistrations, s.onUser(s.endSessions)},
		{http.MethodDelete, "/users/:username/sessions/:id", writeRegistrations, s.onUser(s.endSessions)},
		{http.MethodGet, "/users/:username/consents", readRegistrations, s.onUser(s.listConsents)},
		{http.MethodDelete, "/users/:username/consents/:client_id", writeRegistrations, s.onUser(s.withdrawConsent)},
		{http.MethodGet, "/users/:username/families", readRegistrations, s.onUser(s.listFamilies)},
		{http.MethodDelete, "/users/:username/families", writeRegistrations, s.onUser(s.revokeFamilies)},
		{http.MethodDelete, "/users/:username/families/:id", writeRegistrations, s.onUser(s.revokeFamilies)},
	}
}

// answer checks the scope and the query, and runs the operation.
func (r route) answer(c *call) (err error) {
	if err := c.caller.may(r.scope); err != nil {
		return err
	}
	if c.query, err = url.ParseQuery(c.Request().URL.RawQuery); err != nil {
		return malformed("the query cannot be read: %v", err)
	}
	for name, values := range c.query {
		if len(values) > 1 && name != labelParameter {
			return invalidField(name, "stands in the query %d times", len(values))
		}
	}
	return r.handle(c)
}
