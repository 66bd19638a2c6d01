package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Epoch is "now" in this suite. Stores keep times to the millisecond.
var Epoch = time.Date(2100, time.March, 4, 5, 6, 7, 890e6, time.UTC)

// equal compares records. Nil and empty lists count as equal, as do times of the same instant.
func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// together runs do(0) to do(n-1), all at the same time as far as possible.
func together(n int, do func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}
