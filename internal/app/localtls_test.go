package app

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/check"
)

// TestKeyOverTLS checks that commands on this machine reach the admin API with the local key,
// whatever the public certificate is and whenever it is replaced. Others see only the public
// certificate.
func TestKeyOverTLS(t *testing.T) {
	files := certificateFiles(t)
	first := writeCertificate(t, files, 1)
	cfg := withOperators(t)
	cfg.AdminTLS = files
	r := start(t, cfg, io.Discard)
	access := *r.edge.local
	other := adminlocal.New(access.URL)
	by := func(a *adminlocal.Access) (int, error) {
		transport := a.Transport(&http.Transport{DisableKeepAlives: true})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, access.URL+"/healthz", http.NoBody)
		check.OK(t, err)
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	trusting := first
	for _, serial := range []int64{2, 3} {
		status, err := by(&access)
		check.OK(t, err)
		check.Equal(t, "status", status, http.StatusOK)
		_, err = by(&other)
		check.ErrorIs(t, err, adminlocal.ErrOther)
		if status, _, err := metricsOver(t, r.AdminURL(), &tls.Config{RootCAs: pool(trusting)}); status != http.StatusOK {
			t.Errorf("from outside: status %d, %v", status, err)
		}
		trusting = writeCertificate(t, files, serial)
		check.OK(t, r.base.adminCert.reload(t.Context()))
	}
}
