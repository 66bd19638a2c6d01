package main

import "encoding/json"

// The values of -o.
const (
	outputText = "text"
	outputJSON = "json"
)

// json writes v for a script.
func (c *cli) json(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
