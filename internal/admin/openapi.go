package admin

import (
	_ "embed"
	"net/http"
)

// document describes the API (OpenAPI 3.1). Tests compare it with the routes and with every
// answer.
//
//go:embed openapi.json
var document []byte

// openAPI returns the document.
func (s *Server) openAPI(c *call) error {
	if err := c.parameters(); err != nil {
		return err
	}
	c.write("application/json", http.StatusOK, document)
	return nil
}
