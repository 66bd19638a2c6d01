package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Store is the storage that the registry needs.
type Store interface {
	clientcfg.Store
	clientcfg.RegistrationStore
	Users
	store.Backend
}

// Users stores users. [accounts.Users] implements it.
type Users interface {
	User(ctx context.Context, name string) (accounts.User, error)
	UsersAfter(ctx context.Context, after string, limit int) ([]accounts.StoredUser, error)
	CreateUser(ctx context.Context, u accounts.User, e clientcfg.Event) error
	ChangeUser(ctx context.Context, name string, edit accounts.UserEdit) error
	DeleteUser(ctx context.Context, name string, approve accounts.UserEdit) error
}

// Hasher hashes passwords. [secret.Passwords] implements it.
type Hasher interface {
	Hash(ctx context.Context, password string) (string, error)
}

// Options configure a [Service]. Store is required. Any other zero value means the default noted
// beside the field.
type Options struct {
	Store  Store
	Events clientcfg.EventLog // nothing is recorded

	By       clientcfg.Actor // of the events
	Reason   string
	Instance string
	// Confirmed is a client or user that the caller has confirmed may be changed even if that may
	// lock operators out.
	Confirmed string

	Now       func() time.Time // time.Now
	Passwords Hasher           // one that hashes one password at a time
	// IfClient and IfUser are called with the stored client or user before a change. If they return
	// an error, the change is canceled. The default accepts all.
	IfClient func(c *clientcfg.Client) error
	IfUser   func(u *User) error
}

// Service changes clients and users on behalf of one operator. It is safe for concurrent use.
type Service struct {
	o      Options
	grants *grants.Repository
}

// New returns a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Passwords == nil {
		o.Passwords = secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
	}
	if o.IfClient == nil {
		o.IfClient = func(*clientcfg.Client) error { return nil }
	}
	if o.IfUser == nil {
		o.IfUser = func(*User) error { return nil }
	}
	return &Service{o, grants.NewRepository(o.Store)}
}

// change describes a change for its event.
type change struct {
	action, target string
	before, after  any  // as in the admin API; nil if it does not exist
	demotes        bool // set by mayLockOut
}

// noteWithin bounds the time for recording that a change has failed, because the caller may have
// disconnected.
const noteWithin = 5 * time.Second

// Record makes a change that the store cannot make together with its event. before and after are the
// changed resource, nil if it does not exist. The event is stored first, so every change that was
// made has an event. If the change fails, another event follows and says so.
func (r *Service) Record(ctx context.Context, action, target string, before, after any, do func() error) error {
	if r.o.Events == nil {
		return do()
	}
	e, err := r.newEvent(change{action: action, target: target, before: before, after: after})
	if err == nil {
		err = r.o.Events.AddEvent(ctx, e)
	}
	if err != nil {
		return fmt.Errorf("record the change first: %w", err)
	}
	failed := do()
	if failed != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteWithin)
		defer cancel()
		e.Unknown = true
		_ = r.o.Events.AddEvent(ctx, e) // if this fails too, the trail shows the change as made
	}
	return failed
}

// event returns the event for a change that is about to be made, or the zero event if nothing is
// recorded.
func (r *Service) event(ch change) (clientcfg.Event, error) {
	if r.o.Events == nil {
		return clientcfg.Event{}, nil
	}
	return r.newEvent(ch)
}

func (r *Service) newEvent(ch change) (clientcfg.Event, error) {
	e := clientcfg.Event{
		At: r.o.Now().UTC().Truncate(time.Millisecond), Actor: r.o.By, Action: ch.action, Target: ch.target,
		Reason: r.o.Reason, Instance: r.o.Instance,
	}
	var err error
	if e.Before, err = json.Marshal(ch.before); err == nil {
		e.After, err = json.Marshal(ch.after)
	}
	return e, err
}
