package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"

	"oauth-server/internal/config"
	"oauth-server/internal/httpapi"
)

// listenForOperators binds the address for operators, if there is one. That the
// default one is taken must not keep a second server on a machine from starting.
func (s *Server) listenForOperators(ctx context.Context) error {
	if s.cfg.AdminListen == "" {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.AdminListen)
	if errors.Is(err, syscall.EADDRINUSE) && s.cfg.AdminListen == config.DefaultAdminListen {
		return nil // serveOperators says so
	}
	if err != nil {
		return err
	}
	s.operatorListener = l
	s.undo.push("listening for operators", func(context.Context) error { return closed(l) })
	return nil
}

// serveOperators answers scrapers and operators in the background. It goes on
// while the last requests are answered and the last counts written, so that a
// stop can be watched.
func (s *Server) serveOperators(ctx context.Context, failed chan<- error) {
	if s.operatorListener == nil {
		if s.cfg.AdminListen != "" {
			s.log.LogAttrs(ctx, slog.LevelWarn,
				"operators are not served: another process has the default address; choose one with --admin-listen",
				slog.String("address", s.cfg.AdminListen))
		}
		return
	}
	server := newHTTPServer(s.operatorHandler(), s.log)
	server.WriteTimeout = slowestScrape
	go func() {
		if err := server.Serve(s.operatorListener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	s.undo.push("serving operators", func(ctx context.Context) error {
		return errors.Join(server.Shutdown(ctx), server.Close())
	})
}

func (s *Server) showHealth(w http.ResponseWriter, r *http.Request) {
	s.writeStatus(w, r, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) showReadiness(w http.ResponseWriter, r *http.Request) {
	ready := s.readiness(r.Context())
	status := http.StatusOK
	if ready.Status == httpapi.Down {
		status = http.StatusServiceUnavailable
	}
	s.writeStatus(w, r, status, ready)
}

func (s *Server) writeStatus(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelDebug, "an operator has gone", slog.Any("error", err))
	}
}

// closed closes a listener that its server may have closed already.
func closed(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// AdminAddr is the address that operators are served on; empty if none.
func (s *Server) AdminAddr() string {
	if s.operatorListener == nil {
		return ""
	}
	return s.operatorListener.Addr().String()
}
