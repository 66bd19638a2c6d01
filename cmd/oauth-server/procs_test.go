package main

import (
	"log/slog"
	"runtime"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

func TestRaiseProcs(t *testing.T) {
	embedded, mongodb := config.Default(), config.Default()
	mongodb.Store = config.Store{MongoDB: &config.MongoDB{}}
	processors := runtime.NumCPU()
	for _, tt := range []struct {
		name  string
		cfg   *config.Config
		env   map[string]string
		procs int // before
		want  int
	}{
		{"the embedded store", embedded, nil, processors, processors + 1},
		{"MongoDB", mongodb, nil, processors, processors},
		{"set in the environment", embedded, map[string]string{"GOMAXPROCS": "7"}, processors, processors},
		{"raised before, or by a quota", embedded, nil, processors + 3, processors + 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := runtime.GOMAXPROCS(tt.procs)
			defer runtime.GOMAXPROCS(old)
			raiseProcs(t.Context(), tt.cfg, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }, slog.New(slog.DiscardHandler))
			check.Equal(t, "GOMAXPROCS", runtime.GOMAXPROCS(0), tt.want)
		})
	}
}
