package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

type userDoc struct {
	Name         string               `bson:"_id"`
	PasswordHash string               `bson:"passwordHash"`
	CreatedAt    time.Time            `bson:"createdAt"`
	Stamp        secret.Stamp         `bson:"stamp,omitempty"`
	Operator     clientcfg.Access     `bson:"operator,omitempty"`
	RowFrom      time.Time            `bson:"rowFrom,omitempty"`
	Known        map[string]time.Time `bson:"known,omitempty"` // keys of base64url, without dots
}

// User implements [grants.Users].
func (s *Store) User(ctx context.Context, name string) (grants.User, error) {
	var u grants.StoredUser
	err := s.do(ctx, "read user", func(ctx context.Context) error {
		if !utf8.ValidString(name) { // no BSON string, so no user has it
			return grants.ErrNotFound
		}
		raw, err := s.users.FindOne(ctx, byID(name), options.FindOne().SetComment(comment(ctx))).Raw()
		if err != nil {
			return orNotFound(err)
		}
		u = storedUser(raw)
		return u.Err
	})
	return u.User, err
}

// storedUser decodes a document. What it holds beside the fields of this release is ignored.
func storedUser(raw bson.Raw) grants.StoredUser {
	var doc userDoc
	err := bson.Unmarshal(raw, &doc)
	if err == nil {
		err = checkTimes(doc.CreatedAt)
	}
	if err != nil {
		return grants.StoredUser{User: grants.User{Name: idText(raw)}, Err: fmt.Errorf("%w: %w", grants.ErrUnreadableUser, err)}
	}
	return grants.StoredUser{User: grants.User(doc)}
}

// idText is the _id of a document; one that is no string is shown as JSON.
func idText(raw bson.Raw) string {
	id := raw.Lookup("_id")
	if text, ok := id.StringValueOK(); ok {
		return text
	}
	return id.String()
}

// orNotFound translates the driver's error for no match.
func orNotFound(err error) error {
	if errors.Is(err, mongo.ErrNoDocuments) {
		return grants.ErrNotFound
	}
	return err
}

// Users implements [grants.UserRegistry].
func (s *Store) Users(ctx context.Context) (list []grants.StoredUser, err error) {
	err = s.do(ctx, "read users", func(ctx context.Context) error {
		docs, err := findAll[bson.Raw](ctx, s.users, bson.D{}, options.Find().SetSort(byID(1)))
		for _, raw := range docs {
			list = append(list, storedUser(raw))
		}
		return err
	})
	return list, err
}

// UsersAfter implements [grants.UserRegistry]. A document whose _id is no text is in [Store.Users] only.
func (s *Store) UsersAfter(ctx context.Context, after string, limit int) (list []grants.StoredUser, err error) {
	err = s.do(ctx, "read users", func(ctx context.Context) error {
		greater := byID(bson.D{{Key: "$gt", Value: strings.ToValidUTF8(after, "")}})
		docs, err := findAll[bson.Raw](ctx, s.users, greater, options.Find().SetSort(byID(1)).SetLimit(int64(limit)))
		for _, raw := range docs {
			list = append(list, storedUser(raw))
		}
		return err
	})
	return list, err
}

// CreateUser implements [grants.UserRegistry].
func (s *Store) CreateUser(ctx context.Context, u grants.User) error {
	if !utf8.ValidString(u.Name) {
		return errors.New("mongo: create user: the name is not UTF-8")
	}
	return s.insert(ctx, "create user", s.users, userDoc(u), grants.ErrExists)
}

// ChangeUser implements [grants.Users]. The driver may send it again: applied twice it is the same as
// once, except that a revocation counts twice, which at most ends a sign-in between the two.
func (s *Store) ChangeUser(ctx context.Context, name string, change grants.UserChange) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("mongo: change user: %w", grants.ErrNotFound)
	}
	update, filter := userUpdate(&change), byID(name)
	if change.ReplacesHash != "" {
		filter = append(filter, bson.E{Key: "passwordHash", Value: change.ReplacesHash})
	}
	return s.do(ctx, "change user", func(ctx context.Context) error {
		result, err := s.users.UpdateOne(ctx, filter, update, options.UpdateOne().SetComment(comment(ctx)))
		if err == nil && result.MatchedCount == 0 {
			err = grants.ErrNotFound
		}
		return err
	})
}

// userUpdate returns the update of a change. The server refuses operators without fields.
func userUpdate(change *grants.UserChange) (update bson.D) {
	var set, latest, add, unset bson.D
	if change.PasswordHash != "" {
		set = append(set, bson.E{Key: "passwordHash", Value: change.PasswordHash})
	}
	if change.Revoke {
		add = append(add, bson.E{Key: "stamp.n", Value: int64(1)})
	}
	if change.Operator != nil {
		set = append(set, bson.E{Key: "operator", Value: *change.Operator})
	}
	for address, at := range change.Known {
		set = append(set, bson.E{Key: "known." + address, Value: at})
	}
	if !change.RowFrom.IsZero() {
		latest = append(latest, bson.E{Key: "rowFrom", Value: change.RowFrom})
	}
	for _, address := range change.Forgotten {
		unset = append(unset, bson.E{Key: "known." + address, Value: ""})
	}
	for _, op := range []bson.E{{Key: "$set", Value: set}, {Key: "$max", Value: latest}, {Key: "$inc", Value: add}, {Key: "$unset", Value: unset}} {
		if len(op.Value.(bson.D)) > 0 {
			update = append(update, op)
		}
	}
	return update
}

// DeleteUser implements [grants.UserRegistry].
func (s *Store) DeleteUser(ctx context.Context, name string) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("mongo: delete user: %w", grants.ErrNotFound)
	}
	return s.remove(ctx, "delete user", s.users, name, grants.ErrNotFound)
}
