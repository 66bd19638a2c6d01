package httpapi

import (
	"crypto/sha256"
	_ "embed" // the style sheet and the icon
	"encoding/hex"
	"net/http"
)

//go:embed assets/style.css
var style []byte

//go:embed assets/icon.svg
var icon []byte

// The paths of the assets contain a hash of their content, so browsers may cache them forever.
var (
	stylePath = "/assets/style-" + fingerprint(style) + ".css"
	iconPath  = "/assets/icon-" + fingerprint(icon) + ".svg"
)

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

func (s *Server) serveAsset(content []byte, contentType string) handler {
	return func(c *call) error {
		h := c.Response().Header()
		h.Set("Content-Type", contentType)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		c.Response().WriteHeader(http.StatusOK)
		c.write(content)
		return nil
	}
}
