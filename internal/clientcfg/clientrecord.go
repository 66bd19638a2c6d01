package clientcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// ClientsTable holds the registrations by client ID. It is written by [store.Backend.Append] only.
var ClientsTable = store.Table{Name: "clients"}

// clientDoc is the stored value of a client.
type clientDoc struct {
	Name           string     `json:"name,omitempty"`
	Public         bool       `json:"public,omitempty"`
	SecretDigest   *digestDoc `json:"secretDigest,omitempty"`
	FormerSecret   *formerDoc `json:"formerSecret,omitempty"`
	Grants         []Grant    `json:"grants"`
	RedirectURIs   []string   `json:"redirectUris,omitempty"`
	Scopes         []string   `json:"scopes,omitempty"`
	Audience       []string   `json:"audience,omitempty"`
	WithoutPKCE    bool       `json:"withoutPkce,omitempty"`
	ResourceServer bool       `json:"resourceServer,omitempty"`
	FirstParty     bool       `json:"firstParty,omitempty"`
	Labels         Labels     `json:"labels,omitempty"`
	CreatedAt      time.Time  `json:"createdAt,omitzero"`
	Stamp          stampDoc   `json:"stamp"`
	Version        int64      `json:"version"`
}

type digestDoc = secret.Digest

type stampDoc struct {
	ID    string `json:"id"`
	Count int64  `json:"count"`
}

type formerDoc struct {
	Digest digestDoc `json:"digest"`
	Until  time.Time `json:"until"`
}

// EncodeClient returns the record of a client in [ClientsTable].
func EncodeClient(c *Client) (store.Record, error) {
	d := clientDoc{
		Name: c.Name, Public: c.Public, Grants: c.Grants, RedirectURIs: c.RedirectURIs, Scopes: c.Scopes, Audience: c.Audience,
		WithoutPKCE: c.WithoutPKCE, ResourceServer: c.ResourceServer, FirstParty: c.FirstParty, Labels: c.Labels,
		CreatedAt: c.CreatedAt.UTC(), Stamp: stampDoc(c.Stamp), Version: c.Version,
	}
	if !c.SecretDigest.IsZero() {
		d.SecretDigest = &c.SecretDigest
	}
	if c.Former != (FormerSecret{}) {
		d.FormerSecret = &formerDoc{c.Former.Digest, c.Former.Until.UTC()}
	}
	value, err := encodeJSON(&d)
	return store.Record{Key: c.ID, Value: value}, err
}

// encodeJSON encodes a value without the escapes that only a page of HTML needs.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// decodeClient returns the client of a record. Errors: [ErrUnreadableClient].
func decodeClient(r *store.Record) (c Client, err error) {
	if r.Err != nil {
		return c, fmt.Errorf("%w: %w", ErrUnreadableClient, r.Err)
	}
	var d clientDoc
	if !d.decodeUsual(string(r.Value)) {
		d = clientDoc{}
		err = decodeStrictly(r.Value, &d)
	}
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrUnreadableClient, err)
	}
	c = Client{
		ID: r.Key, Name: d.Name, Public: d.Public, Grants: d.Grants, RedirectURIs: d.RedirectURIs, Scopes: d.Scopes, Audience: d.Audience,
		WithoutPKCE: d.WithoutPKCE, ResourceServer: d.ResourceServer, FirstParty: d.FirstParty, Labels: d.Labels,
		CreatedAt: d.CreatedAt, Stamp: secret.Stamp(d.Stamp), Version: d.Version,
	}
	if d.SecretDigest != nil {
		c.SecretDigest = *d.SecretDigest
	}
	if f := d.FormerSecret; f != nil {
		c.Former = FormerSecret{Digest: f.Digest, Until: f.Until}
	}
	return c, nil
}

// decodeStrictly decodes a stored value. A member that is not known was written by a newer version.
func decodeStrictly(value []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("something follows the value")
	}
	return err
}

// decodeUsual decodes a value as [EncodeClient] writes it, without reflection, which would take most of the
// time of a start with many clients. It reports false, and leaves anything in d, for any other value.
func (d *clientDoc) decodeUsual(value string) bool {
	in := scanner{value: value}
	in.object(func(name string) {
		switch name {
		case "name":
			d.Name = in.text()
		case "public":
			d.Public = in.boolean()
		case "secretDigest":
			digest := in.digest()
			d.SecretDigest = &digest
		case "grants":
			d.Grants = textsOf[Grant](&in)
		case "redirectUris":
			d.RedirectURIs = textsOf[string](&in)
		case "scopes":
			d.Scopes = textsOf[string](&in)
		case "audience":
			d.Audience = textsOf[string](&in)
		case "withoutPkce":
			d.WithoutPKCE = in.boolean()
		case "resourceServer":
			d.ResourceServer = in.boolean()
		case "firstParty":
			d.FirstParty = in.boolean()
		case "labels":
			var pairs []string
			in.object(func(name string) { pairs = append(pairs, name+"="+in.text()) })
			d.Labels = LabelsOf(pairs)
		case "createdAt":
			d.CreatedAt = in.time()
		case "stamp":
			in.object(d.Stamp.decodeUsual(&in))
		case "version":
			d.Version = in.integer()
		default:
			in.failed = true
		}
	})
	return in.done()
}

func (d *stampDoc) decodeUsual(in *scanner) func(name string) {
	return func(name string) {
		switch name {
		case "id":
			d.ID = in.text()
		case "count":
			d.Count = in.integer()
		default:
			in.failed = true
		}
	}
}
