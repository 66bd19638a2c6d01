package admin

import (
	"net/http"
	"time"

	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
)

// resetCounters forgets the counts of a client, or of one of its users, on all instances, through a
// reset in the trail. It responds after the counts are removed from the store too. Otherwise the
// stored counts would return if this process died.
func (s *Server) resetCounters(c *call) error {
	id, err := c.clientID()
	if err != nil {
		return err
	}
	if err := s.registered(c.Request().Context(), id); err != nil {
		return err
	}
	reason, err := c.reason()
	if err != nil {
		return err
	}
	user, err := s.username(c)
	if err != nil {
		return err
	}
	_, err = s.o.Policies.Change(c.lasting(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
		reset, err := clientcfg.ResetCounters(id, user)
		return clientcfg.Event{
			At: s.o.Now().UTC().Truncate(time.Millisecond), Actor: c.caller.Actor(), Action: actionReset, Target: reset.Target, Reason: reason,
			Instance: s.o.Instance(), Before: reset.Before, After: reset.After, Changes: []clientcfg.Change{reset},
		}, err
	})
	if err != nil {
		return err
	}
	if err := s.o.Resets.Erase(c.lasting()); err != nil {
		p := problem.New(http.StatusServiceUnavailable, problem.TypeUnavailable, "Not reset in the store",
			"this instance has reset the counts, but the store could not; "+
				"all instances retry while they run; if the counts return, reset them again")
		p.Cause = err
		return p
	}
	return c.done(nil)
}
