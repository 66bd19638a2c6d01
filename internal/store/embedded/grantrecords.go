package embedded

import (
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func appendAuthorization(b []byte, a *grants.Authorization) []byte {
	b = appendString(b, a.ClientID)
	b = appendString(b, a.Username)
	b = appendString(b, a.Family)
	b = appendStrings(b, a.Scopes)
	return appendTime(b, a.AuthTime)
}

func (d *decoder) authorization() grants.Authorization {
	return grants.Authorization{
		ClientID: d.string(), Username: d.string(), Family: d.string(), Scopes: d.strings(), AuthTime: d.time(),
	}
}

func encodeCode(c *grants.Code) []byte {
	b := header(flags(c.Claimed), c.ExpiresAt)
	b = appendTime(b, c.IssuedAt)
	b = appendAuthorization(b, &c.Authorization)
	b = appendString(b, c.RedirectURI)
	b = appendString(b, c.Challenge)
	return appendStamp(appendStamp(b, c.ClientStamp), c.UserStamp)
}

func decodeCode(digest secret.Digest, value []byte) (grants.Code, error) {
	d, flags, expires := open(value)
	c := grants.Code{Digest: digest, ExpiresAt: expires, Claimed: flags&flagClaimed != 0, IssuedAt: d.time()}
	c.Authorization, c.RedirectURI, c.Challenge = d.authorization(), d.string(), d.string()
	c.ClientStamp, c.UserStamp = d.stamp(), d.stamp()
	return c, d.finish()
}

func encodeSession(s *grants.Session) []byte {
	b := header(0, s.ExpiresAt)
	b = appendTime(b, s.CreatedAt)
	return appendStamp(appendString(b, s.Username), s.UserStamp)
}

func decodeSession(digest secret.Digest, value []byte) (grants.Session, error) {
	d, _, expires := open(value)
	s := grants.Session{Digest: digest, ExpiresAt: expires, CreatedAt: d.time(), Username: d.string(), UserStamp: d.stamp()}
	return s, d.finish()
}
