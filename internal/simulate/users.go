package simulate

// users counts different users by client. It is exact until there are more than it keeps. From then on it keeps every
// second one, every fourth, and so on, chosen by their hashes, and multiplies (adaptive sampling: Flajolet, On adaptive
// sampling, Computing 43, 1990).
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

// keeps reports whether the hash of a user is one of those that are kept. It looks at the upper bits: what a map does
// with the lower ones stays even.
func (u *users) keeps(hash uint64) bool { return hash>>(64-u.level) == 0 }

// estimated reports whether the counts are estimates.
func (u *users) estimated() bool { return u.level > 0 }

// count is how many there are.
func (u *users) count() uint64 { return uint64(len(u.kept)) << u.level }

// byClient is how many there are of each client.
func (u *users) byClient() map[*client]uint64 {
	counts := map[*client]uint64{}
	for _, c := range u.kept {
		counts[c] += 1 << u.level
	}
	return counts
}
