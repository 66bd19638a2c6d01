package storetest

import (
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// stamp is one with a high count.
func stamp(id string) secret.Stamp { return secret.Stamp{ID: id, Count: 1<<40 + 1} }

func user(name string) grants.User {
	return grants.User{
		Name: name, PasswordHash: "$argon2id$v=19$m=65536,t=1,p=4$c2FsdA$aGFzaA", CreatedAt: Epoch,
		Stamp: stamp(name), Operator: clientcfg.ReadAccess,
		RowFrom: Epoch.Add(time.Minute), Known: map[string]time.Time{"a-_Z": Epoch.Add(time.Millisecond)},
	}
}
