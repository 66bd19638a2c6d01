package clientcfg

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/secret"
)

func publicClient(id string) Record {
	return Record{ID: id, Client: Client{ID: id, Public: true, Grants: []Grant{AuthorizationCode}, RedirectURIs: []string{"https://app.example"}}}
}

func idsOf(d *Directory) (ids []string) {
	for c := range d.After("") {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestOrderFollowsChanges: few or many, of any kind, whether a directory was listed or not, and of two that were
// made from one.
func TestOrderFollowsChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d, known := &Directory{}, &shapes{}
	for round := range 300 {
		from, number := d, random.IntN(8)
		if round%50 == 49 {
			number = mostMoved + random.IntN(20)
		}
		for range 2 {
			e := from.edit(known)
			for range number {
				r := publicClient(fmt.Sprint(random.IntN(3000)))
				switch random.IntN(5) {
				case 0, 1:
					r.Gone = true
				case 2:
					r.Err = ErrUnreadableClient
				}
				e.apply(r)
			}
			d = e.directory(Mark{})
			if random.IntN(3) == 0 {
				idsOf(d)
			}
		}
		if random.IntN(2) == 0 {
			check.Equal(t, fmt.Sprint("order of round ", round), idsOf(d), slices.Sorted(d.clients.Keys()))
		}
	}
	after := idsOf(d)[10]
	for c := range d.After(after) {
		check.Equal(t, "next", c.ID, idsOf(d)[11])
		break
	}
}

// BenchmarkFirstPage is the first client by ID of 100,000, after a change of one.
func BenchmarkFirstPage(b *testing.B) {
	const number = 100_000
	known := &shapes{}
	e := (&Directory{}).edit(known)
	for i := range number {
		e.apply(publicClient(fmt.Sprintf("client-%06d", i)))
	}
	d := e.directory(Mark{})
	first := func() {
		for range d.After("") {
			return
		}
	}
	first()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := d.edit(known)
		e.apply(publicClient(fmt.Sprint("new-", i)))
		d = e.directory(Mark{})
		first()
	}
}

// TestOperatorsOfAnEdit: who operates is known also of a client that is copied from another directory.
func TestOperatorsOfAnEdit(t *testing.T) {
	known := &shapes{}
	edit := func(from *Directory, change func(e *directoryEdit)) *Directory {
		e := from.edit(known)
		change(e)
		return e.directory(Mark{})
	}
	operators := func(d *Directory) (ids []string) {
		for c := range d.Operators() {
			ids = append(ids, c.ID)
		}
		return ids
	}
	registered := Client{ID: "ops", Grants: []Grant{ClientCredentials}, SecretDigest: secret.DigestOf("secret")}
	MakeOperator(&registered)
	none := edit(&Directory{}, func(e *directoryEdit) { e.apply(publicClient("app")) })
	one := edit(none, func(e *directoryEdit) { e.apply(Record{ID: "ops", Client: registered}) })
	copied := edit(none, func(e *directoryEdit) { e.copy("ops", one) })
	removed := edit(copied, func(e *directoryEdit) { e.copy("ops", none) })
	for i, want := range map[*Directory][]string{none: nil, one: {"ops"}, copied: {"ops"}, removed: nil} {
		check.Equal(t, "operators", operators(i), want)
	}
}
