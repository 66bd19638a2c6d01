package adminclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path"
)

// Page is a page of a list, by field. The list is in the field with the name of the last element of
// its path.
type Page map[string]json.RawMessage

// Decode sets v to a field, if it is there and not null.
func (p Page) Decode(field string, v any) error {
	if len(p[field]) == 0 {
		return nil
	}
	return json.Unmarshal(p[field], v)
}

// PageOf reads one page of a list.
func PageOf[T any](ctx context.Context, c *Client, at string, query url.Values) (list []T, p Page, err error) {
	if _, err = c.Get(ctx, at, query, &p); err == nil {
		err = p.Decode(path.Base(at), &list)
	}
	return list, p, err
}

// Pages reads all pages of a list. It returns the items, never nil, and the last page.
func Pages[T any](ctx context.Context, c *Client, at string, query url.Values) (all []T, last Page, err error) {
	for all = []T{}; ; {
		list, p, err := PageOf[T](ctx, c, at, query)
		next := ""
		if err = errors.Join(err, p.Decode("next", &next)); err != nil {
			return nil, nil, err
		}
		if all = append(all, list...); next == "" {
			return all, p, nil
		}
		query.Set("after", next)
	}
}
