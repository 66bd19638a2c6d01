package syncer_test

import (
	"testing"

	"oauth-server/internal/syncer/memstore"
	"oauth-server/internal/syncer/synctable"
)

func TestAllegrosTable(t *testing.T) {
	synctable.Run(t, &memstore.Store{})
}
