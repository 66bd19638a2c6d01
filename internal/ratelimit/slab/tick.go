package slab

// Tick converts a time in milliseconds to a count of two-millisecond ticks, modulo 99 days.
func Tick(ms int64) uint32 { return uint32(ms / 2) } //nolint:gosec // modulo is meant

// TicksAgo returns how many milliseconds ago a tick was. It returns 0 for a tick slightly in the
// future, which happens when two goroutines read the clock at about the same time.
func TicksAgo(ms int64, t uint32) int64 {
	const ahead = 1 << 16
	if ago := Tick(ms) - t; ago < 1<<32-ahead {
		return int64(ago) * 2
	}
	return 0
}
