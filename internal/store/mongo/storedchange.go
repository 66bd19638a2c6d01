package mongo

import "go.mongodb.org/mongo-driver/v2/bson"

// storedChange is a [changeDoc] as it is read: each field may be of another type, by hand. When it was
// made is not needed.
type storedChange struct {
	Number bson.RawValue `bson:"_id"`
	Nonce  bson.RawValue `bson:"nonce"`
	Client bson.RawValue `bson:"client"`
	Open   bson.RawValue `bson:"open"`
}

// change returns the announcement. Of one that cannot be read it is the number alone.
func (d *storedChange) change() changeDoc {
	number, whole := wholeNumber(d.Number)
	nonce, random := d.Nonce.Int64OK()
	client, text := d.Client.StringValueOK()
	open, flag := d.Open.BooleanOK()
	if whole && random && text && (flag || d.Open.IsZero()) {
		return changeDoc{Number: number, Nonce: nonce, Client: client, Open: open}
	}
	return changeDoc{Number: number}
}

// unreadable reports whether nothing but the number is known.
func (c *changeDoc) unreadable() bool { return c.Client == "" }

// changesOf leaves out what has the number of no announcement.
func changesOf(stored []storedChange) []changeDoc {
	page := make([]changeDoc, 0, len(stored))
	for i := range stored {
		if _, ok := wholeNumber(stored[i].Number); ok {
			page = append(page, stored[i].change())
		}
	}
	return page
}
