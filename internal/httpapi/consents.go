package httpapi

import (
	"errors"
	"net/http"

	"oauth-server/internal/grants"
	"oauth-server/internal/store"
)

// The paths of the page where users see and withdraw the consents they gave to clients.
const (
	consentsPath = "/consents"
	withdrawPath = "/consents/withdraw"
	thenConsents = "consents" // value of the sign-in form's field then: return to this page
)

// consentsPage is the data of the page.
type consentsPage struct {
	Username string
	Alert    string
	Done     string // the client whose access was withdrawn
	Clients  []allowedClient

	DoneFirstParty bool // the client needs no consent, so it can get access again at any time
}

// allowedClient is an entry of the page.
type allowedClient struct {
	grants.Allowed
	ScopeTexts []scopeText
	Binding    string
}

// ClientName returns the name of the client.
func (a *allowedClient) ClientName() string { return a.Client.DisplayName() }

// consents handles GET /consents.
func (s *Server) consents(c *call) error {
	session, err := s.session(c)
	switch {
	case errors.Is(err, errSignedOut):
		return s.showSignIn(c, http.StatusOK, &signInPage{Then: thenConsents})
	case err != nil:
		return err
	}
	return s.showConsents(c, http.StatusOK, &consentsPage{Username: session.Username})
}

func (s *Server) showConsents(c *call, status int, page *consentsPage) error {
	allowed, err := s.o.Service.Allowed(c.ctx(), page.Username)
	if err != nil {
		return err
	}
	for _, a := range allowed {
		page.Clients = append(page.Clients, allowedClient{
			Allowed: a, ScopeTexts: s.scopeTexts(a.Scopes), Binding: grants.FormToken(s.cookieValue(c), withdrawPath, a.ClientID),
		})
	}
	return s.show(c, status, "consents", page, nil)
}

// withdraw handles POST /consents/withdraw: the user pressed the button next to a client.
func (s *Server) withdraw(c *call) error {
	p, err := readForm(c)
	if err != nil {
		return err
	}
	session, err := s.session(c)
	switch {
	case errors.Is(err, errSignedOut):
		return seeOther(c, s.base+consentsPath)
	case err != nil:
		return err
	}
	c.clientID = p.get("client_id")
	page := &consentsPage{Username: session.Username}
	if !grants.GenuineForm(p.get("binding"), s.cookieValue(c), withdrawPath, c.clientID) {
		page.Alert = "The page you answered belongs to another user. Check this one and decide again."
		return s.showConsents(c, http.StatusForbidden, page)
	}
	switch err := s.o.Service.Withdraw(c.ctx(), session.Username, c.clientID); {
	case errors.Is(err, store.ErrNotFound): // the user pressed twice
	case err != nil:
		return err
	}
	page.Done, page.DoneFirstParty = c.clientID, s.o.Service.FirstParty(c.clientID)
	return s.showConsents(c, http.StatusOK, page)
}
