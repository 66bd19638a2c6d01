package mongo

import (
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// Codes and refresh tokens are in one collection, and so is every claim:
//
//	_id: 0 ‖ digest               a code, or a token without a predecessor
//	_id: 1 ‖ predecessor's digest the token issued for the predecessor, or only
//	                              the mark that the predecessor is claimed
//
// A grant is claimed if there is a document under 1 ‖ digest: that document is both the claim and
// the successor, written in one insert. It stays at least as long as its predecessor, which could
// be claimed again otherwise.
const (
	rootID  = 0
	claimID = 1
)

// Kinds of documents.
const (
	kindCode  = "code"
	kindToken = "refresh_token"
	kindClaim = "claim" // without a successor
)

type grantDoc struct {
	ID          []byte       `bson:"_id"`
	Kind        string       `bson:"kind"`
	Digest      []byte       `bson:"digest"`         // its own, by which it is found
	Mark        []byte       `bson:"mark,omitempty"` // of a claim: random, as two claims may store the same successor
	Expire      time.Time    `bson:"expire"`         // when it may be removed: the TTL index
	ExpiresAt   time.Time    `bson:"expiresAt"`
	IssuedAt    time.Time    `bson:"issuedAt"`
	ClientID    string       `bson:"clientId,omitempty"`
	Username    string       `bson:"username,omitempty"`
	Scopes      []string     `bson:"scopes,omitempty"`
	Family      string       `bson:"family,omitempty"`
	AuthTime    time.Time    `bson:"authTime"`
	RedirectURI string       `bson:"redirectUri,omitempty"`
	Challenge   string       `bson:"challenge,omitempty"`
	ClientStamp secret.Stamp `bson:"clientStamp,omitempty"`
	UserStamp   secret.Stamp `bson:"userStamp,omitempty"`
}

func grantID(kind byte, d secret.Digest) []byte { return append([]byte{kind}, d[:]...) }

func codeDoc(c *grants.Code) grantDoc {
	doc := authorizationDoc(kindCode, &c.Authorization)
	doc.ID, doc.Digest = grantID(rootID, c.Digest), c.Digest[:]
	doc.IssuedAt, doc.ExpiresAt, doc.Expire = c.IssuedAt, c.ExpiresAt, c.ExpiresAt
	doc.RedirectURI, doc.Challenge, doc.ClientStamp = c.RedirectURI, c.Challenge, c.ClientStamp
	return doc
}

func tokenDoc(id []byte, t *grants.RefreshToken) grantDoc {
	doc := authorizationDoc(kindToken, &t.Authorization)
	doc.ID, doc.Digest = id, t.Digest[:]
	doc.IssuedAt, doc.ExpiresAt, doc.Expire = t.IssuedAt, t.ExpiresAt, t.ExpiresAt
	doc.ClientStamp = t.ClientStamp
	return doc
}

// claimDoc returns the document that claims the predecessor, whose digest is d.
func claimDoc(predecessor *grantDoc, d secret.Digest, next *grants.RefreshToken) grantDoc {
	id, mark := grantID(claimID, d), secret.DigestOf(secret.New())
	if next == nil {
		return grantDoc{ID: id, Kind: kindClaim, Digest: mark[:], Mark: mark[:], Expire: predecessor.Expire}
	}
	doc := tokenDoc(id, next)
	doc.Mark = mark[:]
	if doc.Expire.Before(predecessor.Expire) {
		doc.Expire = predecessor.Expire
	}
	return doc
}

func authorizationDoc(kind string, a *grants.Authorization) grantDoc {
	return grantDoc{
		Kind: kind, ClientID: a.ClientID, Username: a.Username, Scopes: a.Scopes, Family: a.Family, AuthTime: a.AuthTime,
		UserStamp: a.UserStamp,
	}
}

func (d *grantDoc) authorization() grants.Authorization {
	return grants.Authorization{
		ClientID: d.ClientID, Username: d.Username, Scopes: d.Scopes, Family: d.Family, AuthTime: d.AuthTime,
		UserStamp: d.UserStamp,
	}
}
