package clientcfg

import (
	"strings"
	"time"

	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/secret"
)

// entry is a client in memory, in a third of the space of a [Client]: values common to many clients
// are stored once, texts are joined into one, and times are milliseconds since 1970, as in the
// stores.
type entry struct {
	shape *shape // the fields that are not below
	// text is the ID, the name, the ID of the stamp, the labels, and the redirect URIs separated by
	// newlines. Labels are here and not in the shape, because operators may give each client
	// different labels. So labels cost only their own length, and clients without labels pay
	// nothing.
	text                                string
	idEnd, nameEnd, stampEnd, labelsEnd uint32 // in text
	digest                              secret.Digest
	createdAt                           int64
	stampCount, version                 int64
}

// formerKept is how long a former secret is kept after it became invalid, because other clocks may
// be behind.
const formerKept = 24 * time.Hour

// entry returns the in-memory form of a client. Fields not handled here become part of the shape,
// which works but costs more memory if they differ from client to client.
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
	c.Labels = labels.Set(e.text[e.stampEnd:e.labelsEnd])
	if lines := e.text[e.labelsEnd:]; lines != "" {
		c.RedirectURIs = strings.Split(lines, "\n")
	}
	c.CreatedAt = time.UnixMilli(e.createdAt).UTC()
	c.Stamp, c.Version = secret.Stamp{ID: e.text[e.nameEnd:e.stampEnd], Count: e.stampCount}, e.version
	return &c
}
