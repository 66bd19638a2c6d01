package clientcfg

import (
	"hash/maphash"
	"maps"
	"slices"
)

// mostShapes bounds the shapes that are looked for. Where clients have more, some are there twice.
const mostShapes = 1 << 12

// shapes has what clients have in common, so that it is in memory once. One goroutine at a time may
// use it.
type shapes struct {
	byHash map[uint64]*Client
	hash   maphash.Hash
}

// clone returns shapes that another goroutine may use.
func (s *shapes) clone() *shapes {
	c := &shapes{byHash: maps.Clone(s.byHash)}
	c.hash.SetSeed(s.hash.Seed())
	return c
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
	if seen := s.byHash[sum]; seen != nil && sameShape(seen, c) {
		return seen
	}
	shape := *c
	s.byHash[sum] = &shape
	return &shape
}

// sameShape compares all that is in a shape.
func sameShape(a, b *Client) bool {
	return a.Former == b.Former && a.Public == b.Public && a.WithoutPKCE == b.WithoutPKCE && a.ResourceServer == b.ResourceServer &&
		a.FirstParty == b.FirstParty &&
		slices.Equal(a.Grants, b.Grants) && slices.Equal(a.Scopes, b.Scopes) && slices.Equal(a.Audience, b.Audience)
}

func (s *shapes) write(text string) {
	_, _ = s.hash.WriteString(text) // never fails
	_ = s.hash.WriteByte(0)
}
