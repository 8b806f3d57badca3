package door

// Unknown returns how many connections have not proved the key.
func (d *Door) Unknown() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unknown.Len()
}
