package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/clientcfg"
)

// decode decodes a document exactly as bson.Unmarshal does. That decodes every document by reflection, which
// would take most of the processor time of a start with many clients. So a document that has only what
// [newClientDoc] writes is decoded by decodeUsual, and any other by the driver.
func (d *clientDoc) decode(raw bson.Raw) error {
	if d.decodeUsual(string(raw)) {
		return nil
	}
	var whole clientDoc // not d, which would be on the heap for every client
	err := bson.Unmarshal(raw, &whole)
	*d = whole
	return err
}

// decodeUsual reports false, and leaves anything in d, for a document that has a field with another name or
// type, or a former secret, which is rare, or that is malformed. Texts are parts of the document.
func (d *clientDoc) decodeUsual(document string) bool {
	return eachElement(document, func(e element) bool {
		return d.decodeField(e) || d.decodeList(e) || d.decodeFlag(e)
	})
}

func (d *clientDoc) decodeField(e element) (ok bool) {
	switch e.name {
	case "_id":
		d.ID, ok = e.text()
	case "version":
		d.Version, ok = e.integer()
	case "etag":
		d.Etag, ok = e.integer()
	case "name":
		d.Name, ok = e.text()
	case "secretSha256":
		d.SecretSHA256, ok = e.bytes()
	case "secretUsed":
		d.SecretUsed, ok = e.time()
	case "createdAt":
		d.CreatedAt, ok = e.time()
	case "stamp":
		ok = e.kind == bson.TypeEmbeddedDocument && eachElement(e.value, d.decodeStamp)
	}
	return ok
}

func (d *clientDoc) decodeStamp(e element) (ok bool) {
	switch e.name {
	case "id":
		d.Stamp.ID, ok = e.text()
	case "n":
		d.Stamp.Count, ok = e.integer()
	}
	return ok
}

func (d *clientDoc) decodeList(e element) (ok bool) {
	switch e.name {
	case "grants":
		d.Grants, ok = listOf[clientcfg.Grant](e)
	case "redirectUris":
		d.RedirectURIs, ok = listOf[string](e)
	case "scopes":
		d.Scopes, ok = listOf[string](e)
	case "audience":
		d.Audience, ok = listOf[string](e)
	case "labels":
		d.Labels, ok = listOf[string](e)
	}
	return ok
}

func (d *clientDoc) decodeFlag(e element) (ok bool) {
	switch e.name {
	case "public":
		d.Public, ok = e.flag()
	case "withoutPkce":
		d.WithoutPKCE, ok = e.flag()
	case "resourceServer":
		d.ResourceServer, ok = e.flag()
	case "firstParty":
		d.FirstParty, ok = e.flag()
	}
	return ok
}
