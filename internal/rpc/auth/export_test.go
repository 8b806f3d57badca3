package auth

// Unknown returns how many connections have not proved the key.
func (s *Server) Unknown() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown.Len()
}
