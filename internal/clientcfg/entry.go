package clientcfg

import (
	"encoding/binary"
	"slices"
	"time"
	"unique"

	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/secret"
)

// entry is a client in memory, in a third of the space of a [Client]: the common part is stored once
// for all clients that share it, texts are joined into one, and times are milliseconds since 1970,
// as in the stores.
type entry struct {
	common unique.Handle[common]
	// text has the ID, the name, the ID of the stamp and the labels, each after its length, and then
	// the lists; see appendList.
	text                string
	digest              secret.Digest
	createdAt           int64
	stampCount, version int64
}

// common is the part of a client that is the same for many clients.
type common struct {
	former                                          FormerSecret
	public, withoutPKCE, resourceServer, firstParty bool
	grants                                          string // for each grant, its index in knownGrants
}

// formerKept is how long a former secret is kept after it became invalid, because other clocks may
// be behind.
const formerKept = 24 * time.Hour

// newEntry returns the in-memory form of a valid client.
func newEntry(c *Client) *entry {
	text := make([]byte, 0, 512)
	for _, part := range [...]string{c.ID, c.Name, c.Stamp.ID, string(c.Labels)} {
		text = appendText(text, part)
	}
	for _, list := range [...][]string{c.RedirectURIs, c.Scopes, c.Audience} {
		text = appendList(text, list)
	}
	grants := make([]byte, len(c.Grants), 8)
	for i, g := range c.Grants {
		grants[i] = byte(slices.Index(knownGrants, g)) //nolint:gosec // a valid client has no other
	}
	shared := common{
		former: c.Former, public: c.Public, withoutPKCE: c.WithoutPKCE, resourceServer: c.ResourceServer, firstParty: c.FirstParty,
		grants: string(grants),
	}
	if shared.former.Used = (time.Time{}); time.Since(c.Former.Until) > formerKept {
		shared.former = FormerSecret{}
	}
	return &entry{
		common: unique.Make(shared), text: string(text), digest: c.SecretDigest, createdAt: c.CreatedAt.UnixMilli(),
		stampCount: c.Stamp.Count, version: c.Version,
	}
}

func (e *entry) grants() []Grant {
	indexes := e.common.Value().grants
	grants := make([]Grant, len(indexes))
	for i := range grants {
		grants[i] = knownGrants[indexes[i]]
	}
	return grants
}

func (e *entry) client() *Client {
	shared := e.common.Value()
	c := &Client{
		SecretDigest: e.digest, Former: shared.former, Public: shared.public, Grants: e.grants(), WithoutPKCE: shared.withoutPKCE,
		ResourceServer: shared.resourceServer, FirstParty: shared.firstParty, CreatedAt: time.UnixMilli(e.createdAt).UTC(), Version: e.version,
	}
	rest, marks := e.text, ""
	c.ID, rest = cutText(rest)
	c.Name, rest = cutText(rest)
	c.Stamp.ID, rest = cutText(rest)
	marks, rest = cutText(rest)
	c.Labels, c.Stamp.Count = labels.Set(marks), e.stampCount
	c.RedirectURIs, rest = cutList(rest)
	c.Scopes, rest = cutList(rest)
	c.Audience, _ = cutList(rest)
	return c
}

// appendText appends a string after its length.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// appendList appends the number of strings, and each string after its length.
func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = appendText(b, text)
	}
	return b
}

// cutList returns the list at the start of an appendList result, and the rest. The strings of the
// list are substrings of from.
func cutList(from string) (list []string, rest string) {
	n, rest := cutLength(from)
	if n > 0 {
		list = make([]string, n)
	}
	for i := range list {
		list[i], rest = cutText(rest)
	}
	return list, rest
}

func cutText(from string) (text, rest string) {
	n, rest := cutLength(from)
	return rest[:n], rest[n:]
}

func cutLength(from string) (n uint64, rest string) {
	n, size := binary.Uvarint([]byte(from[:min(len(from), binary.MaxVarintLen64)]))
	return n, from[size:]
}
