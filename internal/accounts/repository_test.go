package accounts_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
	"oauth-server/internal/store/mongo"
	"oauth-server/internal/store/mongo/mongotest"
)

func TestSessionRecords(t *testing.T) {
	r, ctx := newWorld(t).store, t.Context()
	session := func(user string, n int) accounts.Session {
		return accounts.Session{Key: fmt.Sprint(user, n), Username: user, CreatedAt: start.Add(time.Duration(n) * time.Minute), ExpiresAt: start.Add(time.Hour), UserStamp: secret.NewStamp()}
	}
	names := func(user string) (text string) {
		list, err := r.SessionsOf(ctx, user)
		check.OK(t, err)
		for _, s := range list {
			text += s.Key + " "
		}
		return text
	}
	for n := range 5 {
		check.OK(t, errors.Join(r.CreateSession(ctx, session("bob", n), 3), r.CreateSession(ctx, session("bo", n), 3)))
	}
	check.Equal(t, "the newest three", names("bob"), "bob4 bob3 bob2 ")
	check.ErrorIs(t, r.CreateSession(ctx, session("bob", 4), 1), store.ErrConflict)
	check.OK(t, r.CreateSession(ctx, session("bob", -9), 1)) // the clock of another instance
	check.Equal(t, "never the new one", names("bob"), "bob-9 ")
	want := session("eve", 1)
	check.OK(t, r.CreateSession(ctx, want, 1))
	got, err := r.Session(ctx, want.Key)
	check.OK(t, err)
	check.Equal(t, "session", got, want)
	check.OK(t, errors.Join(r.DeleteSession(ctx, want.Key), r.DeleteSession(ctx, want.Key)))
	_, err = r.Session(ctx, want.Key)
	check.ErrorIs(t, err, store.ErrNotFound)
}

func TestRevocationRecords(t *testing.T) {
	r, ctx := newWorld(t).store, t.Context()
	check.OK(t, errors.Join(r.Revoke(ctx, "a", start.Add(time.Hour)), r.Revoke(ctx, "a", start)))
	for _, tt := range []struct {
		names []string
		want  bool
	}{{nil, false}, {[]string{"b"}, false}, {[]string{"b", "a"}, true}, {[]string{"a", "a"}, true}} {
		yes, err := r.Revoked(ctx, tt.names...)
		check.OK(t, err)
		check.Equal(t, fmt.Sprint(tt.names), yes, tt.want)
	}
	revoked, err := r.RevokedOf(ctx, []string{"b", "a", "c"})
	check.OK(t, err)
	check.Equal(t, "revoked", revoked, []string{"a"})
	n, err := r.Sweep(ctx, start.Add(time.Minute))
	check.OK(t, err)
	check.Equal(t, "removed before the later time", n, 0)
	check.OK(t, r.RecordOnce(ctx, "once", start))
	check.ErrorIs(t, r.RecordOnce(ctx, "once", start), store.ErrConflict)
}

// people are the users of a store, with their Known records.
type people struct {
	t *testing.T
	store.Backend
	*accounts.Users
	*accounts.Repository
	follower *store.Follower
}

func peopleOf(t *testing.T, b store.Backend) people {
	t.Helper()
	f, err := store.NewFollower(t.Context(), b)
	check.OK(t, err)
	return people{t, b, accounts.NewUsers(f, b), accounts.NewRepository(b), f}
}

// onBoth runs a test with an empty file and with an empty database.
func onBoth(t *testing.T, test func(p people)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		file, err := bolt.Open(filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
		check.OK(t, err)
		t.Cleanup(func() { check.OK(t, file.Close()) })
		test(peopleOf(t, file))
	})
	t.Run("MongoDB", func(t *testing.T) {
		uri, database := mongotest.Database(t)
		db, err := mongo.Open(t.Context(), mongo.Options{URI: uri, Database: database})
		check.OK(t, err)
		t.Cleanup(func() { check.OK(t, db.Close()) })
		_, err = db.Migrate(t.Context())
		check.OK(t, err)
		test(peopleOf(t, db))
	})
}

// later is so late that no database expires the test's records.
var later = time.Date(2100, time.March, 4, 5, 6, 7, 890e6, time.UTC)

func (p people) add(t *testing.T, name string) accounts.User {
	t.Helper()
	u := accounts.User{Name: name, PasswordHash: `$argon2id$v=19$m=65536,t=1,p=4$"c2\FsdA$ü`, CreatedAt: later, Stamp: secret.NewStamp(), Operator: clientcfg.ReadAccess}
	check.OK(t, p.CreateUser(t.Context(), u, event("create", name)))
	return u
}

func (p people) is(t *testing.T, want accounts.User) {
	t.Helper()
	got, err := p.User(t.Context(), want.Name)
	check.OK(t, err)
	check.Equal(t, "stored", got, want)
}

func event(action, name string) clientcfg.Event {
	return clientcfg.Event{Action: action, Target: clientcfg.UserTarget(name), At: later}
}

// edits returns an edit with its event.
func edits(action string, edit func(u *accounts.User)) accounts.UserEdit {
	return func(u *accounts.User) (clientcfg.Event, error) {
		edit(u)
		return event(action, u.Name), nil
	}
}

// TestUserRecords: each change is made together with its event, or not at all.
func TestUserRecords(t *testing.T) {
	onBoth(t, func(p people) {
		t := p.t
		ctx, alice := t.Context(), p.add(t, "alice")
		bob := p.add(t, "bob")
		p.is(t, alice)
		check.ErrorIs(t, p.CreateUser(ctx, alice, event("create", "alice")), accounts.ErrExists)
		check.OK(t, p.ChangeUser(ctx, "alice", edits("operator", func(u *accounts.User) { u.Operator = clientcfg.NoAccess })))
		check.OK(t, p.ChangeUser(ctx, "alice", edits("nothing", func(*accounts.User) {})))
		check.OK(t, p.ChangeUser(ctx, "alice", edits("password", func(u *accounts.User) { u.PasswordHash, u.Stamp = "h", u.Stamp.Revoked() })))
		refused := func(u *accounts.User) (clientcfg.Event, error) {
			u.PasswordHash = "x"
			return event("refused", "alice"), errDown
		}
		check.ErrorIs(t, p.ChangeUser(ctx, "alice", refused), errDown)
		check.ErrorIs(t, p.DeleteUser(ctx, "alice", refused), errDown)
		alice.Operator, alice.PasswordHash = clientcfg.NoAccess, "h"
		alice.Stamp.Count++
		p.is(t, alice)
		check.OK(t, p.DeleteUser(ctx, "alice", edits("delete", func(*accounts.User) {})))
		for _, name := range []string{"alice", "", "Bob", "bo", "bob ", "bob\x00", "\xff", "$where", strings.Repeat("x", 40_000)} {
			_, err := p.User(ctx, name)
			check.ErrorIs(t, err, store.ErrNotFound)
			check.ErrorIs(t, p.ChangeUser(ctx, name, edits("password", func(u *accounts.User) { u.PasswordHash = "x" })), store.ErrNotFound)
			check.ErrorIs(t, p.DeleteUser(ctx, name, nil), store.ErrNotFound)
		}
		p.is(t, bob)
		events, err := clientcfg.NewAuditTrail(p.follower).Events(ctx, clientcfg.EventQuery{Target: "users/alice"})
		check.OK(t, err)
		var actions []string
		for i := range events {
			actions = append(actions, events[i].Action)
		}
		check.Equal(t, "events", actions, []string{"delete", "password", "operator", "create"})
	})
}

// TestUsersChangedAtOnce: every revocation counts, across two instances too.
func TestUsersChangedAtOnce(t *testing.T) {
	onBoth(t, func(p people) {
		t := p.t
		alice, other := p.add(t, "alice"), peopleOf(t, p.Backend)
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() {
				check.OK(t, []people{p, other}[i%2].ChangeUser(t.Context(), "alice", edits("revoke", func(u *accounts.User) { u.Stamp = u.Stamp.Revoked() })))
			})
		}
		calls.Wait()
		alice.Stamp.Count += 20
		p.is(t, alice)
	})
}

func (p people) names(t *testing.T, after string, limit int) (text string) {
	t.Helper()
	list, err := p.UsersAfter(t.Context(), after, limit)
	check.OK(t, err)
	for _, u := range list {
		if text += u.Name + " "; u.Err != nil {
			check.ErrorIs(t, u.Err, accounts.ErrUnreadableUser)
			text += "(unreadable) "
		}
	}
	return text
}

// TestUnreadableUsers: an unreadable user affects no other user. It is listed, exists, and can be
// deleted.
func TestUnreadableUsers(t *testing.T) {
	onBoth(t, func(p people) {
		t := p.t
		ctx := t.Context()
		for _, name := range []string{"ann", "cat", "cät"} {
			p.add(t, name)
		}
		for _, value := range []string{`{"passwordHash":7}`, `{"passwordHash":"h","color":"red"}`, `{"createdAt":"yesterday"}`, `{"stamp":{"id":"x","n":"1"}}`} {
			_, err := p.follower.Append(ctx, func(int64) (store.Entry, []store.Write, error) {
				w := store.Write{Table: accounts.UsersTable, Record: store.Record{Key: "bad", Value: []byte(value)}}
				return store.Entry{Value: []byte(`{}`)}, []store.Write{w}, nil
			})
			check.OK(t, err)
			_, err = p.User(ctx, "bad")
			check.ErrorIs(t, err, accounts.ErrUnreadableUser)
			check.ErrorIs(t, p.ChangeUser(ctx, "bad", edits("revoke", func(*accounts.User) {})), accounts.ErrUnreadableUser)
			check.ErrorIs(t, p.CreateUser(ctx, accounts.User{Name: "bad"}, clientcfg.Event{}), accounts.ErrExists)
			check.Equal(t, "all", p.names(t, "", 10), "ann bad (unreadable) cat cät ")
			check.OK(t, p.DeleteUser(ctx, "bad", func(u *accounts.User) (clientcfg.Event, error) {
				check.Equal(t, "what is known of it", u == nil, true)
				return clientcfg.Event{}, nil
			}))
		}
		check.Equal(t, "first page", p.names(t, "", 2), "ann cat ")
		check.Equal(t, "next page", p.names(t, "cat", 2), "cät ")
		check.Equal(t, "after one that is not there", p.names(t, "b", 1), "cat ")
		check.ErrorSays(t, accounts.Tables[accounts.UsersTable](&store.Record{Key: "x", Value: []byte(`{"passwordHash":"%argon2id$"}`)}), "hash")
	})
}

func TestRestampUsers(t *testing.T) {
	onBoth(t, func(p people) {
		t := p.t
		before := p.add(t, "ada")
		check.OK(t, p.RestampUsers(t.Context()))
		after, err := p.User(t.Context(), "ada")
		check.OK(t, err)
		check.Equal(t, "accepts what was issued", after.Stamp.Accepts(before.Stamp.Revoked()), false)
		before.Stamp = after.Stamp
		p.is(t, before)
	})
}

// TestKnownRecords: concurrent sign-ins all keep what they learned, and none of it applies to
// another user with the same name.
func TestKnownRecords(t *testing.T) {
	onBoth(t, func(p people) {
		t := p.t
		ctx, ada := t.Context(), accounts.User{Name: "ada", Stamp: secret.NewStamp()}
		of := func() accounts.Known {
			t.Helper()
			k, err := p.Known(ctx, "ada")
			check.OK(t, err)
			return k
		}
		learn := func(u accounts.User, address string) error {
			return p.ChangeKnown(ctx, &u, func(k *accounts.Known) {
				k.EndRow(later)
				k.Add(address, later)
			})
		}
		check.Equal(t, "known of nobody", fmt.Sprint(of()), fmt.Sprint(accounts.Known{}))
		const writers = 8
		var calls sync.WaitGroup
		for i := range writers {
			calls.Go(func() { check.OK(t, learn(ada, "-_"+strconv.Itoa(i))) })
		}
		calls.Wait()
		k := of()
		check.Equal(t, "addresses", len(k.Addresses), writers)
		check.Equal(t, "time of one", k.Addresses["-_3"], later)
		check.Equal(t, "row", k.RowFrom, later.Add((writers-1)*time.Millisecond))
		table := store.Table{Name: "known_addresses"}
		check.OK(t, p.Get(ctx, table, func(r store.Record) error {
			check.Equal(t, "owner", r.Owner, "ada")
			check.Equal(t, "kept until", r.Expires, k.RowFrom.Add(90*24*time.Hour))
			return nil
		}, "ada"))

		namesake := accounts.User{Name: "ada", Stamp: secret.NewStamp()}
		check.OK(t, learn(namesake, "b"))
		check.Equal(t, "known of the namesake", fmt.Sprint(of()), fmt.Sprint(accounts.Known{
			Username: "ada", StampID: namesake.Stamp.ID, RowFrom: later, Addresses: map[string]time.Time{"b": later},
		}))

		check.OK(t, p.ForgetKnown(ctx, "ada"))
		_, err := p.Put(ctx, table, store.Record{Key: "ada", Value: []byte(`{"addresses":7}`)}, store.Seen{})
		check.OK(t, err)
		check.Equal(t, "of a record that cannot be read", len(of().Addresses), 0)
		check.OK(t, learn(ada, "c"))
		check.Equal(t, "of one in its place", len(of().Addresses), 1)
		check.OK(t, errors.Join(p.ForgetKnown(ctx, "ada"), p.ForgetKnown(ctx, "ada")))
		check.Equal(t, "forgotten", len(of().Addresses), 0)
	})
}

// TestNamesakeIsNotKnown: the addresses and the row of a deleted user do not apply to the next user
// with that name.
func TestNamesakeIsNotKnown(t *testing.T) {
	w := newWorld(t, daily(1000, 10))
	w.wrong("alice", 100, 1)
	check.OK(t, w.signIn(here, "alice", password))
	alice, err := w.store.User(t.Context(), "alice")
	check.OK(t, err)
	check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil)) // without deleting the Known record, as if a sign-in stored it afterwards
	alice.Stamp = secret.NewStamp()
	check.OK(t, w.store.CreateUser(t.Context(), alice, clientcfg.Event{}))
	w.wrong("alice", 0, 9) // the first row already has one
	check.ErrorIs(t, w.signIn(number(10), "alice", "wrong"), accounts.ErrSignIn)
	wantWait(t, w.signIn(here, "alice", password), rowOver)
}
