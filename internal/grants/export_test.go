package grants

import (
	"time"

	"oauth-server/internal/clientcfg"
)

// What the tests in package grants_test see of the inside. They are outside
// because they use a real store, which imports this package.

// ValidateURI is what the library asks.
var ValidateURI = validateURI

// ClientInfo is what the library sees of a client.
type ClientInfo = clientInfo

// NewClientInfo shows a client to the library.
var NewClientInfo = func(c *clientcfg.Client) ClientInfo { return clientInfo{c} }

// SetRefreshTokenLifetime changes the setting of a running service.
func (s *Service) SetRefreshTokenLifetime(d time.Duration) { s.opts.RefreshTokenLifetime = d }
