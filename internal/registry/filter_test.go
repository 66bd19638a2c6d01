package registry

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

func TestClientsAreFiltered(t *testing.T) {
	store := openTestStore(t)
	for id, labels := range map[string]clientcfg.Labels{
		"shop": "region=eu\nteam=payments", "shop2": "team=payments", "report": "region=us\nteam=data", "plain": "",
	} {
		addClient(t, store, clientcfg.Client{ID: id, Labels: labels})
	}
	addClient(t, store, clientcfg.Client{ID: "web", Grants: []clientcfg.Grant{clientcfg.Password}})
	for _, tt := range []struct {
		filter Filter
		want   string
	}{
		{Filter{}, "plain report shop shop2 web"},
		{Filter{Prefix: "shop"}, "shop shop2"},
		{Filter{Labels: []string{"team=payments"}}, "shop shop2"},
		{Filter{Labels: []string{"team=payments", "region"}}, "shop"},
		{Filter{Labels: []string{"team=payments", "region=us"}}, ""},
		{Filter{Prefix: "r", Labels: []string{"team"}}, "report"},
		{Filter{Grant: clientcfg.Password}, "web"},
		{Filter{Grant: clientcfg.Password, Labels: []string{"team"}}, ""},
	} {
		list, err := on(store).Clients(t.Context(), tt.filter)
		check.OK(t, err)
		var ids []string
		for _, c := range list.Clients {
			ids = append(ids, c.ID)
		}
		check.Equal(t, tt.want, strings.Join(ids, " "), tt.want)
	}
}
