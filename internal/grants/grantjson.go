package grants

import (
	"errors"
	"math"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store/document"
)

// grantValue encodes a grant. One is written at every refresh.
func grantValue(g *grant) []byte {
	w := document.New(384)
	w.String("client", g.ClientID)
	w.String("family", g.Family)
	w.Strings("scopes", g.Scopes)
	w.Int("authTime", g.AuthTime.UnixMilli())
	w.Int("issued", g.issued.UnixMilli())
	clientcfg.WriteStamp(w, "clientStamp", g.clientStamp)
	clientcfg.WriteStamp(w, "userStamp", g.UserStamp)
	w.String("redirectUri", g.redirectURI)
	w.String("challenge", g.challenge)
	w.Bool("claimed", g.claimed)
	if g.generation > 0 {
		w.Int("generation", int64(g.generation))
		if until := g.until.UnixMilli(); until != g.kept.UnixMilli() {
			w.Int("until", until)
		}
	}
	return w.End()
}

// readGrant decodes a value into g. The caller sets g.kept first.
func readGrant(value []byte, g *grant) error {
	g.AuthTime, g.issued, g.until = time.UnixMilli(0).UTC(), time.UnixMilli(0).UTC(), g.kept
	inRange := true
	r := document.Read(value)
	at := func() time.Time {
		n := r.Int()
		inRange = inRange && n >= firstMilli && n <= lastMilli
		return time.UnixMilli(n).UTC()
	}
	for r.Next() {
		switch string(r.Name()) {
		case "client":
			g.ClientID = r.String()
		case "family":
			g.Family = r.String()
		case "scopes":
			g.Scopes = r.Strings()
		case "authTime":
			g.AuthTime = at()
		case "issued":
			g.issued = at()
		case "clientStamp":
			g.clientStamp = clientcfg.ReadStamp(r)
		case "userStamp":
			g.UserStamp = clientcfg.ReadStamp(r)
		case "redirectUri":
			g.redirectURI = r.String()
		case "challenge":
			g.challenge = r.String()
		case "claimed":
			g.claimed = r.Bool()
		case "generation":
			n := r.Int()
			inRange = inRange && n > 0 && n <= math.MaxUint32
			g.generation = uint32(n) //nolint:gosec // compared before
		case "until":
			g.until = at()
		default:
			r.Unknown()
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	if !inRange || g.ClientID == "" {
		return errors.New("a number out of range, or no client")
	}
	return nil
}

// The range of times that JSON can represent: years 0 to 9999, in milliseconds.
const (
	firstMilli = -62167219200000
	lastMilli  = 253402300799999
)
