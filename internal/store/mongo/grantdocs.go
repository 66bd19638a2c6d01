package mongo

import (
	"crypto/rand"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// Codes and families are in one collection, and so are the refresh tokens of earlier releases:
//
//	_id: 0 ‖ digest               a code, or a token of an earlier release without a predecessor
//	_id: 1 ‖ digest               the family that begins with that code or token, or with nothing;
//	                              or only the mark that the code is claimed
//	_id: 1 ‖ predecessor's digest a token that an earlier release issued for the predecessor
//
// A grant is claimed if there is a document under 1 ‖ digest: that document is both the claim and
// what it is claimed for, written in one insert. It stays at least as long as its predecessor, which
// could be claimed again otherwise.
const (
	rootID  = 0
	claimID = 1
)

// Kinds of documents. Families are claims, so that the validators and the instances of earlier releases
// take them for what they are to them.
const (
	kindCode  = "code"
	kindToken = "refresh_token" // of an earlier release
	kindClaim = "claim"         // with a family, or without
)

type grantDoc struct {
	ID          []byte       `bson:"_id"`
	Kind        string       `bson:"kind"`
	Digest      []byte       `bson:"digest"`               // of a code or token, which is found by it; of a claim, unique
	Mark        []byte       `bson:"mark,omitempty"`       // of the last claim or rotation: random, it shows whose that was
	Generation  int64        `bson:"generation,omitempty"` // of a family
	Expire      time.Time    `bson:"expire"`               // when it may be removed: the TTL index
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

// familyDoc returns the document of a family. It is never found by its digest, so half of that is
// enough for the index.
func familyDoc(f *grants.Family) grantDoc {
	doc := authorizationDoc(kindClaim, &f.Authorization)
	doc.ID, doc.Digest, doc.Mark = grantID(claimID, f.Digest), f.Digest[:len(f.Digest)/2], newMark()
	doc.Generation = int64(f.Generation)
	doc.IssuedAt, doc.ExpiresAt, doc.Expire = f.IssuedAt, f.ExpiresAt, f.ExpiresAt
	doc.ClientStamp = f.ClientStamp
	return doc
}

// claimDoc returns the document that claims the predecessor, whose digest is d.
func claimDoc(predecessor *grantDoc, d secret.Digest, first *grants.Family) grantDoc {
	if first == nil {
		mark := newMark()
		return grantDoc{ID: grantID(claimID, d), Kind: kindClaim, Digest: mark, Mark: mark, Expire: predecessor.Expire}
	}
	doc := familyDoc(first)
	if doc.Expire.Before(predecessor.Expire) {
		doc.Expire = predecessor.Expire
	}
	return doc
}

// newMark returns 16 random bytes.
func newMark() []byte {
	mark := make([]byte, 16)
	_, _ = rand.Read(mark) // never fails
	return mark
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
