package app

import (
	"io"
	"log/slog"

	"oauth-server/internal/config"
)

// NewLogger makes the logger that the configuration asks for. A level that it
// does not know is info; [config.Config.Validate] reports it.
func NewLogger(cfg config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
