package storetest

import (
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func authorization(name string) grants.Authorization {
	return grants.Authorization{
		ClientID: "shop", Username: "älice", Scopes: []string{"read", "write"},
		Family: "family of " + name, AuthTime: Epoch.Add(-time.Minute), UserStamp: stamp("älice"),
	}
}

// code returns the authorization code whose secret is name.
func code(name string) grants.Code {
	return grants.Code{
		Authorization: authorization(name), Digest: secret.DigestOf(name),
		RedirectURI: "https://example.test/cb?x=1&y=2", Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		IssuedAt: Epoch, ExpiresAt: Epoch.Add(time.Minute), ClientStamp: stamp("shop"),
	}
}

// family returns the family whose secret is name, in its first generation.
func family(name string) grants.Family {
	return grants.Family{
		Authorization: authorization(name), Digest: secret.DigestOf(name), Generation: 1,
		IssuedAt: Epoch, ExpiresAt: Epoch.Add(time.Hour), ClientStamp: stamp("shop"),
	}
}

// agreement is what a user allows a client.
func agreement(username, clientID string) grants.Agreement {
	return grants.Agreement{
		Username: username, ClientID: clientID, ID: "agreement of " + username + " with " + clientID, Scopes: []string{"read", "write"},
		AgreedAt: Epoch, UsedAt: Epoch.Add(time.Minute), ExpiresAt: Epoch.Add(5 * time.Hour),
		ClientStamp: stamp(clientID), UserStamp: stamp(username), Version: 1,
	}
}

// stamp is one with a high count.
func stamp(id string) secret.Stamp { return secret.Stamp{ID: id, Count: 1<<40 + 1} }

func session(name string) grants.Session {
	return grants.Session{
		Digest: secret.DigestOf(name), Username: "älice", CreatedAt: Epoch, ExpiresAt: Epoch.Add(time.Hour),
		UserStamp: stamp("älice"),
	}
}

func user(name string) grants.User {
	return grants.User{
		Name: name, PasswordHash: "$argon2id$v=19$m=65536,t=1,p=4$c2FsdA$aGFzaA", CreatedAt: Epoch,
		Stamp: stamp(name), Operator: clientcfg.ReadAccess,
		RowFrom: Epoch.Add(time.Minute), Known: map[string]time.Time{"a-_Z": Epoch.Add(time.Millisecond)},
	}
}
