package registry

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

func TestNewUsersHaveCanonicalNames(t *testing.T) {
	store := openTestStore(t)
	check.OK(t, store.CreateUser(t.Context(), grants.User{Name: "Bob", CreatedAt: noon})) // by an earlier release
	_, _, err := CreateClient(t.Context(), store, clientcfg.Client{ID: "shop"}, noon)
	check.OK(t, err)
	create := func(name string) (User, error) {
		return CreateUser(t.Context(), store, name, testPassword, clientcfg.NoAccess, noon)
	}
	u, err := create("A\u0308DA@Example.com")
	check.OK(t, err)
	check.Equal(t, "name", u.Username, "\u00e4da@example.com")
	_, err = store.User(t.Context(), u.Username)
	check.OK(t, err)

	for _, name := range []string{"bob", "BOB", "Bob", "\u00c4da@example.com"} {
		if _, err := create(name); !errors.Is(err, grants.ErrExists) {
			t.Errorf("CreateUser(%q) = %v, want that it exists", name, err)
		}
	}
	if _, err := create("SHOP"); !errors.Is(err, ErrNameOfClient) {
		t.Errorf("the name of a client: %v", err)
	}
	for _, name := range []string{"ada lovelace", "\u265a", "p\u0430ul", "ada\u200b"} {
		var invalid *InvalidError
		if _, err := create(name); !errors.As(err, &invalid) {
			t.Errorf("CreateUser(%+q) = %v, want that it is invalid", name, err)
		}
	}
}

func TestCheckUsers(t *testing.T) {
	var users []User
	for _, name := range []string{"Bob", "CAROL", "Eve Adams", "ada", "bob", "p\u0430ul", "山田yamada"} {
		users = append(users, User{Username: name})
	}
	want := []NameReport{
		{"Bob", "bob", []string{"bob"}, "is one name with bob; signs in only if typed exactly so"},
		{"CAROL", "carol", nil, "signs in only if typed exactly so"},
		{"Eve Adams", "", nil, "signs in only if typed exactly so; holds a character that a username cannot have, such as a space, a symbol or an invisible one, or mixes directions of writing"},
		{"bob", "bob", []string{"Bob"}, "is one name with Bob"},
		{"p\u0430ul", "p\u0430ul", nil, "mixes the scripts Cyrillic and Latin, whose letters can pass for each other"},
	}
	if diff := cmp.Diff(want, CheckUsers(users), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	check.Equal(t, "reports of good names", len(CheckUsers(users[3:4])), 0)
	users[3].Unreadable = "it is spoilt"
	check.Equal(t, "an unreadable user", CheckUsers(users[3:4])[0].Problem, "cannot sign in: it is spoilt")
}
