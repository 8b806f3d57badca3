package tcp

// NearNobody makes a transport take all peers for far ones.
func (t *Transport) NearNobody() {
	s := *t.settings.Load()
	s.near = 0
	t.settings.Store(&s)
}
