package syncer

// Kill ends the loops as kill -9 does: nothing is flushed. Calls under way may
// still reach the store.
func (s *Syncer) Kill() {
	s.stop()
	s.abort()
	s.loops.Wait()
}

// Items is how many items wait in the lanes, void ones included.
func (s *Syncer) Items() int {
	st := s.Stats()
	return st.WritesWaiting + st.ReadsWaiting
}
