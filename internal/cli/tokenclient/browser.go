package tokenclient

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
)

// OpenBrowser opens the address in the person's browser. On some desktops it returns only when the
// browser is closed, so call it in a goroutine. The browser outlives ctx.
func OpenBrowser(ctx context.Context, address string) error {
	name, args := browserCommand(runtime.GOOS, address)
	//nolint:gosec // G204: the program is fixed and the address one argument; no shell reads it
	if err := exec.CommandContext(context.WithoutCancel(ctx), name, args...).Run(); err != nil {
		return fmt.Errorf("open a browser with %s: %w", name, err)
	}
	return nil
}

func browserCommand(goos, address string) (name string, args []string) {
	switch goos {
	case "darwin":
		return "open", []string{address}
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		return "xdg-open", []string{address}
	}
}
