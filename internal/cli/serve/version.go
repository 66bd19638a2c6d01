package serve

import (
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
)

// build describes the sources of this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the working tree had changes
	Go       string `json:"go"`
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: info.Main.Version, Go: info.GoVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
}

// NewVersion makes the command that shows the version.
func NewVersion(c *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show what this binary was built from",
		Example: "  oauth-server version\n  oauth-server version -o json",
		Args:    command.Takes(),
		RunE: func(*cobra.Command, []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			b := buildOf(info)
			known := slices.DeleteFunc([]string{"oauth-server", b.Version, b.Revision, b.Go}, func(s string) bool { return s == "" })
			return c.Answer(b, strings.Join(known, " "))
		},
	}
}
