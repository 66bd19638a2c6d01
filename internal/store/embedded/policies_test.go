package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// fileWithPolicies unpacks a file that a release of format 2 has written: eight changes of which the
// last is a reset, and the one before removes a policy.
func fileWithPolicies(t *testing.T) (path string, content []byte) {
	t.Helper()
	path, content = filepath.Join(t.TempDir(), "policies2.db"), unpack(t, "policies2.db.gz")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// TestFormat2: the policies of a file of an earlier release are the same, changes follow its trail, and a
// copy of the file is kept, which that release can open.
func TestFormat2(t *testing.T) {
	path, _ := fileWithPolicies(t)
	for range 2 {
		s := mustOpen(t, path)
		state, err := s.PolicyState(t.Context())
		check.OK(t, err)
		check.Equal(t, "version", state.Version, 8)
		check.Equal(t, "ID of the last entry", state.ID, "id-8")
		versions := map[string]int64{}
		for target, v := range state.Targets {
			versions[target] = v.Version
		}
		check.Equal(t, "targets", versions, map[string]int64{
			"settings": 2, "policies/shop": 1, "policies/a/b": 3, "candidates/shop": 4, "candidates/_default": 5,
		})
		source, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
		check.OK(t, err)
		p := source.Snapshot()
		check.Equal(t, "limit of shop", p.For("shop").User.All()[0].Requests, 7)
		check.Equal(t, "limit of others", p.For("other").Client.All()[0].Requests, 9)
		check.Equal(t, "trust in a/b", p.For("a/b").Trusted, true)
		trial, _ := p.Trial("shop")
		check.Equal(t, "limit that is tried", trial.Effective.User.All()[0].Requests, 5)
		entries, err := s.Audit(t.Context(), clientcfg.AuditQuery{})
		check.OK(t, err)
		check.Equal(t, "entries", len(entries), 8)
		check.OK(t, s.Close())
	}
	s := mustOpen(t, path)
	source, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
	check.OK(t, err)
	_, err = source.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
		c, err := clientcfg.ChangePolicy("shop", nil)
		return clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{ID: "id-9", At: time.Now()}, Changes: []clientcfg.Change{c}}, err
	})
	check.OK(t, err)
	other, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
	check.OK(t, err)
	_, changed := other.Snapshot().Policy("shop")
	check.Equal(t, "shop has a policy", changed, false)
	check.OK(t, s.Close())

	change(t, path+".format2", func(tx *bolt.Tx) error {
		found, err := checkFormat(tx)
		check.Equal(t, "format of the copy", found, whole)
		check.Equal(t, "the copy has the policies in one value", len(get(tx, settings, policiesKey)) > 8, true)
		return err
	})
	info, err := os.Stat(path + ".format2")
	check.OK(t, err)
	check.Equal(t, "mode of the copy", info.Mode().Perm(), 0o600)
}

// TestFormat2Damaged: a file whose policies cannot be read is refused, and stays as it is.
func TestFormat2Damaged(t *testing.T) {
	path, _ := fileWithPolicies(t)
	bad := append(versionKey(8), `{"version":8,"clients":5}`...)
	change(t, path, func(tx *bolt.Tx) error { return tx.Bucket(buckets[settings]).Put(policiesKey, bad) })
	for range 2 {
		if _, err := Open(path, Options{}); !errors.Is(err, clientcfg.ErrUnreadable) {
			t.Errorf("Open() = %v", err)
		}
	}
	change(t, path, func(tx *bolt.Tx) error {
		found, err := checkFormat(tx)
		check.Equal(t, "format", found, whole)
		check.Equal(t, "policies", string(get(tx, settings, policiesKey)), string(bad))
		return err
	})
}
