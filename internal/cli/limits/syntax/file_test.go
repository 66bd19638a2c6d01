package syntax

import (
	"encoding/json"
	"testing"

	"oauth-server/internal/check"
)

// TestStrictLimitsAreExportedShort: without the defaults of a strict limit, which differ from the
// defaults of other limits.
func TestStrictLimitsAreExportedShort(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ shown, want string }{
		{
			`[{"name":"a","requests":10,"window":"600s","frames":60,"algorithm":"sliding","soft_ratio":0.8,"on_outage":"deny","strict":true,"lease_wait":"50ms"}]`,
			`[{"name":"a","requests":10,"window":"10m","strict":true}]`,
		},
		{
			`[{"name":"a","requests":10,"window":"60s","frames":6,"strict":true,"lease_wait":"0.1s"}]`,
			`[{"name":"a","requests":10,"window":"60s","frames":6,"strict":true,"lease_wait":"100ms"}]`,
		},
		{
			`[{"name":"a","requests":10,"window":"60s","frames":60,"on_outage":"deny"}]`,
			`[{"name":"a","requests":10,"window":"60s","frames":60,"on_outage":"deny"}]`,
		},
	} {
		check.Equal(t, tc.shown, string(shortLimits(json.RawMessage(tc.shown))), tc.want)
	}
}
