package serve

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
)

// fromLibraries passes lines of package log to the log of the server. OpenTelemetry logs there when it
// cannot send spans, and net/http when an upstream sends data without a request.
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
