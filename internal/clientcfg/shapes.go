package clientcfg

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// mostShapes bounds the shapes that are looked for. Where clients have more, some are there twice.
const mostShapes = 1 << 12

// shape is what clients have in common. The lists are apart, because there may be as many as clients,
// and in one text, because as slices they take several times their length.
type shape struct {
	common *Client // without the lists, and without what is in an entry
	lists  string  // scopes and audience, see appendList
}

// shapes has what clients have in common, so that it is in memory once. One goroutine at a time may
// use it.
type shapes struct {
	byHash map[uint64]*Client // the common part
	hash   maphash.Hash
	known  map[shape]*shape
	lists  []byte // of the client that is looked for
}

// of returns the shape of a client, which it changes.
func (s *shapes) of(c *Client) *shape {
	s.lists = appendList(appendList(s.lists[:0], c.Scopes), c.Audience)
	c.Scopes, c.Audience = nil, nil
	common := s.commonOf(c)
	if seen := s.known[shape{common, string(s.lists)}]; seen != nil { // without a copy of the lists
		return seen
	}
	is := shape{common, string(s.lists)}
	if s.known == nil || len(s.known) >= mostShapes {
		s.known = map[shape]*shape{}
	}
	s.known[is] = &is
	return &is
}

// commonOf returns a common part that is equal: the one that was seen last of those with the hash, or
// this one. All that is compared is hashed, or those that differ in the rest would replace each other.
func (s *shapes) commonOf(c *Client) *Client {
	if s.byHash == nil || len(s.byHash) >= mostShapes {
		s.byHash = map[uint64]*Client{}
	}
	s.hash.Reset()
	maphash.WriteComparable(&s.hash, c.Former)
	maphash.WriteComparable(&s.hash, [...]bool{c.Public, c.WithoutPKCE, c.ResourceServer, c.FirstParty})
	for _, g := range c.Grants {
		_, _ = s.hash.WriteString(string(g)) // never fails
		_ = s.hash.WriteByte(0)
	}
	sum := s.hash.Sum64()
	if seen := s.byHash[sum]; seen != nil && sameCommon(seen, c) {
		return seen
	}
	common := *c
	s.byHash[sum] = &common
	return &common
}

// sameCommon compares all that is in the common part of a shape.
func sameCommon(a, b *Client) bool {
	return a.Former == b.Former && a.Public == b.Public && a.WithoutPKCE == b.WithoutPKCE && a.ResourceServer == b.ResourceServer &&
		a.FirstParty == b.FirstParty && slices.Equal(a.Grants, b.Grants)
}

// client returns a client of that shape.
func (s *shape) client() Client {
	c := *s.common
	scopes, rest := cutList(s.lists)
	c.Scopes = scopes
	c.Audience, _ = cutList(rest)
	return c
}

// appendList appends how many texts there are, and each behind its length.
func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// cutList returns the list at the beginning of what appendList has made, whose texts are parts of it, and
// the rest.
func cutList(from string) (list []string, rest string) {
	n, rest := cutLength(from)
	if n > 0 {
		list = make([]string, n)
	}
	for i := range list {
		n, rest = cutLength(rest)
		list[i], rest = rest[:n], rest[n:]
	}
	return list, rest
}

func cutLength(from string) (n uint64, rest string) {
	n, size := binary.Uvarint([]byte(from[:min(len(from), binary.MaxVarintLen64)]))
	return n, from[size:]
}
