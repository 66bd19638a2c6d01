package admin

import (
	_ "embed"
	"net/http"
)

//go:generate go test -run TestDocument$ -update .

// document describes the API (OpenAPI 3.1). It is generated from the routes and the types of their
// bodies. Tests compare it with every answer.
//
//go:embed openapi.json
var document []byte

// openAPI returns the document.
func (s *Server) openAPI(c *call) error {
	c.write("application/json", http.StatusOK, document)
	return nil
}
