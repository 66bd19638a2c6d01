package dashboards

import (
	"bytes"
	"encoding/json"
	"slices"
)

// All returns the dashboards by the name of their file.
func All() map[string]Dashboard {
	return map[string]Dashboard{
		"ratelimits.json": rateLimits(),
		"service.json":    service(),
		"sync.json":       syncing(),
	}
}

// JSON returns the content of the dashboard's file.
func (d Dashboard) JSON() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // expressions stay readable
	e.SetIndent("", "  ")
	err := e.Encode(d)
	return out.Bytes(), err
}

func concat(groups ...[]Panel) []Panel { return slices.Concat(groups...) }
