package membership

// Depth returns how many steps host is away from the head.
func (t Tree) Depth(host int) (steps int) {
	for ; host > 0; host = t.Parent(host) {
		steps++
	}
	return steps
}
