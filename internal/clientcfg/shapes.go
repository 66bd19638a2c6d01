package clientcfg

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// mostShapes bounds the number of shapes that are looked up. If clients have more shapes, some are
// stored twice.
const mostShapes = 1 << 12

// shape is the part of a client that other clients may share. The lists are separate, because there
// may be as many as clients, and joined into one string, because slices would take several times
// their length.
type shape struct {
	common *Client // without the lists, and without the fields of entry
	lists  string  // scopes and audience, see appendList
}

// shapes finds equal shapes, so each is in memory once. It is not safe for concurrent use.
type shapes struct {
	byHash map[uint64]*Client // the common part
	hash   maphash.Hash
	known  map[shape]*shape
	lists  []byte // of the client being looked up
}

// of returns the shape of a client. It modifies c.
func (s *shapes) of(c *Client) *shape {
	s.lists = appendList(appendList(s.lists[:0], c.Scopes), c.Audience)
	c.Scopes, c.Audience = nil, nil
	common := s.commonOf(c)
	if seen := s.known[shape{common, string(s.lists)}]; seen != nil { // looked up without copying the lists
		return seen
	}
	is := shape{common, string(s.lists)}
	if s.known == nil || len(s.known) >= mostShapes {
		s.known = map[shape]*shape{}
	}
	s.known[is] = &is
	return &is
}

// commonOf returns an equal common part: the last one seen with the same hash, or a copy of c. The
// hash covers all compared fields, because otherwise parts that differ in the rest would keep
// replacing each other.
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

// sameCommon compares all fields of the common part.
func sameCommon(a, b *Client) bool {
	return a.Former == b.Former && a.Public == b.Public && a.WithoutPKCE == b.WithoutPKCE && a.ResourceServer == b.ResourceServer &&
		a.FirstParty == b.FirstParty && slices.Equal(a.Grants, b.Grants)
}

// client returns a client with that shape.
func (s *shape) client() Client {
	c := *s.common
	scopes, rest := cutList(s.lists)
	c.Scopes = scopes
	c.Audience, _ = cutList(rest)
	return c
}

// appendList appends the number of strings, and each string after its length.
func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
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
		n, rest = cutLength(rest)
		list[i], rest = rest[:n], rest[n:]
	}
	return list, rest
}

func cutLength(from string) (n uint64, rest string) {
	n, size := binary.Uvarint([]byte(from[:min(len(from), binary.MaxVarintLen64)]))
	return n, from[size:]
}
