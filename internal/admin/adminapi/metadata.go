package adminapi

import (
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/secret"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// metadataInput is a client in a request (RFC 7591 2). Read-only fields are ignored, so a document
// can be read, edited and sent back. A secret is not accepted.
type metadataInput struct {
	Registration
	Labels          map[string]*string `json:"labels"` // a null value means no such label
	SecretExpiresAt int64              `json:"client_secret_expires_at" schema:"readonly"`
}

// Limits on a client.
const (
	maxItems = 100 // of each list
	maxName  = 200 // bytes
	maxItem  = 2000
)

// check returns the fields out of bounds.
func (in *metadataInput) check() (errs fielderr.Errors) {
	if len(in.Name) > maxName {
		errs.Add("client_name", "has %d bytes, more than the maximum of %d", len(in.Name), maxName)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"redirect_uris", in.RedirectURIs}, {"audience", in.Audience}, {"scope", strings.Fields(in.Scope)}} {
		if len(list.items) > maxItems {
			errs.Add(list.name, "has %d items, more than the maximum of %d", len(list.items), maxItems)
		}
		for i, item := range list.items {
			if item == "" || len(item) > maxItem {
				errs.Add(fielderr.Item(list.name, i), "must have 1 to %d bytes", maxItem)
			}
		}
	}
	return errs
}

// ReadMetadata replaces the metadata of a client. It leaves the validation of the whole client to
// the registry, unless there are other errors: then it returns all of them.
func ReadMetadata(v *strict.Value, c *clientcfg.Client) error {
	in := metadataInput{Registration: Registration{Metadata: clientcfg.Metadata{ClientID: c.ID, RequirePKCE: true}}}
	errs := v.Decode(&in, nil)
	errs.AddUnreported(checkName("client_id", in.ClientID, c.ID))
	return in.apply(errs, c)
}

func (in *metadataInput) apply(errs fielderr.Errors, c *clientcfg.Client) error {
	labels, err := in.labels()
	errs.AddUnreported(fielderr.Of(err))
	m := in.Metadata
	m.ClientID, m.Labels = c.ID, labels
	errs.AddUnreported(in.check())
	errs.AddUnreported(m.Apply(c))
	if len(errs) > 0 {
		checked := *c
		if checked.Public = m.AuthMethod == clientcfg.AuthNone; checked.Public {
			checked.SecretDigest = secret.Digest{}
		}
		errs.AddUnreported(fielderr.Of(checked.Validate()))
	}
	return errs.Err()
}

// labels returns the labels that are not null, and their errors.
func (in *metadataInput) labels() (labels.Set, error) {
	values := map[string]string{}
	for name, value := range in.Labels {
		if value != nil {
			values[name] = *value
		}
	}
	return labels.Parse(labels.PairsOf(values))
}

// ReadNewClient reads a client to be registered. Its secret may be given as a digest, if it is
// already in use elsewhere. Errors: [fielderr.Errors].
func ReadNewClient(v *strict.Value) (c clientcfg.Client, err error) {
	var in struct {
		metadataInput
		SecretHash string `json:"client_secret_hash"`
	}
	in.RequirePKCE = true
	errs := v.Decode(&in, nil)
	c.ID = in.ClientID
	if in.SecretHash != "" {
		if c.SecretDigest, err = secret.ParseDigest(in.SecretHash); err != nil {
			errs.Add("client_secret_hash", "%v", err)
		}
	}
	digest := c.SecretDigest
	if in.AuthMethod != clientcfg.AuthNone {
		c.SecretDigest = secret.DigestOf("") // so only the fields in the request are checked
	}
	err = in.apply(errs, &c)
	c.SecretDigest = digest
	return c, err
}
