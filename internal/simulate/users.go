package simulate

// users counts different users by client. It is exact up to the number of users that it can keep.
// Beyond that it keeps every second user, every fourth, and so on, chosen by their hashes, and
// multiplies (adaptive sampling: Flajolet, On adaptive sampling, Computing 43, 1990).
type users struct {
	kept  map[uint64]*client // by hash
	most  int
	level uint // one of 1<<level users is kept
}

func newUsers(most int) users { return users{kept: map[uint64]*client{}, most: most} }

func (u *users) add(hash uint64, c *client) {
	if !u.keeps(hash) {
		return
	}
	u.kept[hash] = c
	for len(u.kept) > u.most {
		u.level++
		for h := range u.kept {
			if !u.keeps(h) {
				delete(u.kept, h)
			}
		}
	}
}

// keeps reports whether users keeps a user with that hash. It uses the upper bits. The lower bits,
// which a map uses, stay evenly distributed.
func (u *users) keeps(hash uint64) bool { return hash>>(64-u.level) == 0 }

// estimated reports whether the counts are estimates.
func (u *users) estimated() bool { return u.level > 0 }

// count returns the number of users.
func (u *users) count() uint64 { return uint64(len(u.kept)) << u.level }

// byClient returns the number of users of each client.
func (u *users) byClient() map[*client]uint64 {
	counts := map[*client]uint64{}
	for _, c := range u.kept {
		counts[c] += 1 << u.level
	}
	return counts
}
