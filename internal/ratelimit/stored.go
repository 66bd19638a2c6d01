package ratelimit

import "time"

// StoredUsage is a counter as its document alone tells of it, for people to
// look at: of a key that other processes serve and this one does not hold. False if
// ls has no limit of that name, or nothing of the document matters any more.
func (c *Counters) StoredUsage(now time.Time, id CounterID, ls *Limits, frames []FrameCount) (Usage, bool) {
	ms := c.millis(now)
	e := newEntry(&shard{}, Key{ClientID: id.ClientID, Username: id.Username}, ls, ms)
	for i := range ls.rules {
		if r := &ls.rules[i]; r.doc == id.Limit {
			e.at(i).replaceKnown(r, ms, frames)
			us := e.usages(nil, ms) // no other counter of the entry has anything
			if len(us) == 1 {
				us[0].LastSeen = time.Time{}
				return us[0], true
			}
		}
	}
	return Usage{}, false
}
