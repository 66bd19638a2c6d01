package clientcfg

import (
	"strings"
	"time"

	"oauth-server/internal/secret"
)

// entry is a client in memory, in a third of the space of a [Client]: what many clients have in common is
// there once, texts are one text, and times are milliseconds since 1970, as in the stores. Entries can be
// compared.
type entry struct {
	shape *shape // the fields that are not below
	// text is the ID, the name, the ID of the stamp, the labels, and the redirect URIs in lines. Labels are
	// here, and not in the shape, because nothing keeps operators from giving each client its own: so they
	// cost their own length, and a client without any costs nothing more.
	text                                string
	idEnd, nameEnd, stampEnd, labelsEnd uint32 // in text
	digest                              secret.Digest
	createdAt                           int64
	stampCount, version                 int64
}

// formerKept is after how long a former secret that is not valid any more is left out: clocks that judge
// whether it is may be behind.
const formerKept = 24 * time.Hour

// entry returns a client as it is kept in memory. A field that is not named here is part
// of the shape: one that differs from client to client only costs more.
func (s *shapes) entry(c Client) *entry {
	var ends [4]uint32
	end := 0
	for i, text := range [...]string{c.ID, c.Name, c.Stamp.ID, string(c.Labels)} {
		end += len(text)
		ends[i] = uint32(end) //nolint:gosec // less than 4 GiB
	}
	e := &entry{
		text:  c.ID + c.Name + c.Stamp.ID + string(c.Labels) + strings.Join(c.RedirectURIs, "\n"),
		idEnd: ends[0], nameEnd: ends[1], stampEnd: ends[2], labelsEnd: ends[3],
		digest: c.SecretDigest, createdAt: c.CreatedAt.UnixMilli(),
		stampCount: c.Stamp.Count, version: c.Version,
	}
	c.ID, c.Name, c.SecretDigest, c.RedirectURIs, c.Labels = "", "", secret.Digest{}, nil, ""
	c.CreatedAt, c.Stamp, c.Version = time.Time{}, secret.Stamp{}, 0
	if c.SecretUsed, c.Former.Used = (time.Time{}), (time.Time{}); time.Since(c.Former.Until) > formerKept {
		c.Former = FormerSecret{}
	}
	e.shape = s.of(&c)
	return e
}

func (e *entry) id() string { return e.text[:e.idEnd] }

func (e *entry) client() *Client {
	c := e.shape.client()
	c.ID, c.Name, c.SecretDigest = e.id(), e.text[e.idEnd:e.nameEnd], e.digest
	c.Labels = Labels(e.text[e.stampEnd:e.labelsEnd])
	if lines := e.text[e.labelsEnd:]; lines != "" {
		c.RedirectURIs = strings.Split(lines, "\n")
	}
	c.CreatedAt = time.UnixMilli(e.createdAt).UTC()
	c.Stamp, c.Version = secret.Stamp{ID: e.text[e.nameEnd:e.stampEnd], Count: e.stampCount}, e.version
	return &c
}

// equal reports whether it is the same client. Shapes that are equal may be there twice.
func (e *entry) equal(other *entry) bool {
	like := *e
	like.shape = other.shape
	return like == *other && *e.shape == *other.shape
}
