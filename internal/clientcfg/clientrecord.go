package clientcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/store/document"
)

// ClientsTable holds the registrations by client ID. Only [store.Backend.Append] writes it.
var ClientsTable = store.Table{Name: "clients"}

// EncodeClient returns the record of a client in [ClientsTable].
func EncodeClient(c *Client) (store.Record, error) {
	w := document.New(500)
	w.String("name", c.Name)
	w.Bool("public", c.Public)
	writeDigest(w, "secretDigest", c.SecretDigest)
	if c.Former != (FormerSecret{}) {
		w.Object("formerSecret", func() {
			writeDigest(w, "digest", c.Former.Digest)
			w.Time("until", c.Former.Until)
		})
	}
	w.Strings("grants", grantNames(c.Grants))
	w.Strings("redirectUris", c.RedirectURIs)
	w.Strings("scopes", c.Scopes)
	w.Strings("audience", c.Audience)
	w.Bool("withoutPkce", c.WithoutPKCE)
	w.Bool("resourceServer", c.ResourceServer)
	w.Bool("firstParty", c.FirstParty)
	w.Strings("labels", c.Labels.Pairs())
	w.Time("createdAt", c.CreatedAt)
	WriteStamp(w, "stamp", c.Stamp)
	w.Int("version", c.Version)
	return store.Record{Key: c.ID, Value: w.End()}, nil
}

func writeDigest(w *document.Writer, name string, d secret.Digest) {
	if !d.IsZero() {
		w.String(name, d.String())
	}
}

func grantNames(grants []Grant) []string {
	names := make([]string, len(grants))
	for i, g := range grants {
		names[i] = string(g)
	}
	return names
}

// validClient returns the client in a record. An invalid client is treated as unreadable.
func validClient(r *store.Record) (Client, error) {
	c, err := decodeClient(r)
	if err == nil {
		err = c.Validate()
	}
	return c, err
}

// decodeClient is the inverse of EncodeClient.
func decodeClient(record *store.Record) (c Client, err error) {
	c.ID = record.Key
	r := document.Read(record.Value)
	for r.Next() {
		switch string(r.Name()) {
		case "name":
			c.Name = r.String()
		case "public":
			c.Public = r.Bool()
		case "secretDigest":
			err = c.SecretDigest.UnmarshalText(r.Text())
		case "formerSecret":
			c.Former, err = readFormer(r)
		case "grants":
			c.Grants = readGrants(r)
		case "redirectUris":
			c.RedirectURIs = r.Strings()
		case "scopes":
			c.Scopes = r.Strings()
		case "audience":
			c.Audience = r.Strings()
		case "withoutPkce":
			c.WithoutPKCE = r.Bool()
		case "resourceServer":
			c.ResourceServer = r.Bool()
		case "firstParty":
			c.FirstParty = r.Bool()
		case "labels":
			c.Labels = labels.Of(r.Strings())
		case "createdAt":
			c.CreatedAt = r.Time()
		case "stamp":
			c.Stamp = ReadStamp(r)
		case "version":
			c.Version = r.Int()
		default:
			r.Unknown()
		}
		if err != nil {
			return c, err
		}
	}
	return c, r.Err()
}

func readGrants(r *document.Reader) []Grant {
	names := r.Strings()
	grants := make([]Grant, len(names))
	for i, name := range names {
		grants[i] = Grant(name)
	}
	return grants
}

func readFormer(r *document.Reader) (f FormerSecret, err error) {
	for r.Object(); r.Next() && err == nil; {
		switch string(r.Name()) {
		case "digest":
			err = f.Digest.UnmarshalText(r.Text())
		case "until":
			f.Until = r.Time()
		default:
			r.Unknown()
		}
	}
	return f, err
}

// WriteStamp writes a stamp as a member, with the names of its JSON form.
func WriteStamp(w *document.Writer, name string, s secret.Stamp) {
	w.Object(name, func() {
		w.String("id", s.ID)
		w.Int("n", s.Count)
	})
}

// ReadStamp is the inverse of WriteStamp.
func ReadStamp(r *document.Reader) (s secret.Stamp) {
	for r.Object(); r.Next(); {
		switch string(r.Name()) {
		case "id":
			s.ID = r.String()
		case "n":
			s.Count = r.Int()
		default:
			r.Unknown()
		}
	}
	return s
}

// readClient returns the client in a record, or the reason why it cannot be read.
func readClient(r *store.Record) Record {
	c, err := Client{}, r.Err
	if err == nil {
		c, err = validClient(r)
	}
	if err != nil {
		return unreadableRecord(r.Key, err)
	}
	return Record{ID: r.Key, Client: c}
}

func unreadableRecord(id string, err error) Record {
	text := strings.TrimPrefix(err.Error(), store.ErrUnreadable.Error()+": ")
	return Record{ID: id, Err: fmt.Errorf("%w: %s", ErrUnreadableClient, text)}
}

// encodeJSON encodes a value without escaping HTML.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// decodeStrictly decodes a stored value. An unknown member is an error, because a newer version
// wrote it.
func decodeStrictly(value []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("unexpected data after the value")
	}
	return err
}
