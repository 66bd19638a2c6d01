package serve

import (
	"log/slog"
	"runtime"
	"testing"

	"oauth-server/internal/check"
)

func TestRaisedProcs(t *testing.T) {
	for name, tt := range map[string]struct {
		now, processors int // now: what Go chose, max(2, the quota rounded up) at most
		set, held       bool
		want            int
	}{
		"one processor":                            {1, 1, false, true, 2},
		"two processors":                           {2, 2, false, true, 3},
		"a quota of a half on one processor":       {1, 1, false, true, 2},
		"a quota of a half on two processors":      {2, 2, false, true, 3},
		"a quota of a half on four processors":     {2, 4, false, true, 2},
		"a quota of 2.5 on four processors":        {3, 4, false, true, 3},
		"a quota of 3.5 on four, which is all":     {4, 4, false, true, 5},
		"the environment sets less":                {1, 4, true, true, 1},
		"the environment sets what there are":      {4, 4, true, true, 4},
		"the environment sets more":                {7, 4, true, true, 7},
		"raised before":                            {5, 4, false, true, 5},
		"MongoDB":                                  {4, 4, false, false, 4},
		"MongoDB, with a quota of a half, on four": {2, 4, false, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "GOMAXPROCS", raisedProcs(tt.now, tt.processors, tt.set, tt.held), tt.want)
		})
	}
}

func TestRaiseProcs(t *testing.T) {
	processors := runtime.NumCPU()
	for _, tt := range []struct {
		name  string
		held  bool
		env   map[string]string
		procs int // before
		want  int
	}{
		{"the embedded store", true, nil, processors, processors + 1},
		{"MongoDB, passwords in other processes", false, nil, processors, processors},
		{"set in the environment", true, map[string]string{"GOMAXPROCS": "7"}, processors, processors},
		{"raised before", true, nil, processors + 3, processors + 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := runtime.GOMAXPROCS(tt.procs)
			defer runtime.GOMAXPROCS(old)
			raiseProcs(t.Context(), tt.held, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }, slog.New(slog.DiscardHandler))
			check.Equal(t, "GOMAXPROCS", runtime.GOMAXPROCS(0), tt.want)
		})
	}
}
