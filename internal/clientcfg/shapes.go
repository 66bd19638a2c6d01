package clientcfg

import (
	"hash/maphash"
	"reflect"
	"strings"
	"time"

	"oauth-server/internal/secret"
)

// mostShapes bounds the shapes that are looked for. Where clients have more, some are there twice.
const mostShapes = 1 << 12

// shapes has what clients have in common, so that it is in memory once. One goroutine at a time may
// use it.
type shapes struct {
	byHash map[uint64]*Client
	hash   maphash.Hash
}

// entry returns the client of a record as it is kept in memory. A field that is not named here is part
// of the shape, so that none can be forgotten: one that differs from client to client only costs more.
func (s *shapes) entry(r *Record) *entry {
	c := r.Client
	e := &entry{
		id: c.ID, name: c.Name, digest: c.SecretDigest, redirectURIs: strings.Join(c.RedirectURIs, "\n"),
		createdAt: c.CreatedAt, notBefore: c.NotBefore, stamp: c.Stamp, version: c.Version, tag: r.Tag,
	}
	c.ID, c.Name, c.SecretDigest, c.RedirectURIs = "", "", secret.Digest{}, nil
	c.CreatedAt, c.NotBefore, c.Stamp, c.Version = time.Time{}, time.Time{}, secret.Stamp{}, 0
	c.SecretUsed, c.Former.Used = time.Time{}, time.Time{}
	e.shape = s.of(&c)
	return e
}

// of returns a shape that is equal: the one that was seen last of those with the hash, or this one. All
// that is compared is hashed, or shapes that differ in the rest would replace each other.
func (s *shapes) of(c *Client) *Client {
	if s.byHash == nil || len(s.byHash) >= mostShapes {
		s.byHash = map[uint64]*Client{}
	}
	s.hash.Reset()
	maphash.WriteComparable(&s.hash, c.Former)
	maphash.WriteComparable(&s.hash, [...]bool{c.Public, c.WithoutPKCE, c.ResourceServer, c.FirstParty})
	for _, g := range c.Grants {
		s.write(string(g))
	}
	for _, list := range [][]string{c.Scopes, c.Audience} {
		s.write("")
		for _, text := range list {
			s.write(text)
		}
	}
	sum := s.hash.Sum64()
	if seen := s.byHash[sum]; seen != nil && reflect.DeepEqual(seen, c) {
		return seen
	}
	shape := *c
	s.byHash[sum] = &shape
	return &shape
}

func (s *shapes) write(text string) {
	_, _ = s.hash.WriteString(text) // never fails
	_ = s.hash.WriteByte(0)
}
