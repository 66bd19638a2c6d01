package serve

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
)

// fromLibraries is the output of package log, in which libraries log: OpenTelemetry about spans that
// it cannot send, and net/http about data that an upstream sends without a request.
type fromLibraries struct{ log *slog.Logger }

// quoted matches text in quotation marks. Libraries quote what a peer has sent, which may be a
// secret.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// Write implements [io.Writer]. Package log calls it once for each message.
func (f fromLibraries) Write(line []byte) (int, error) {
	text := quoted.ReplaceAllString(strings.TrimSpace(string(line)), `"…"`)
	f.log.LogAttrs(context.Background(), slog.LevelWarn, "message of a library", slog.String("text", text))
	return len(line), nil
}
