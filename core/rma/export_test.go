package rma

// Held reports whether anybody holds the lock or waits for it.
func (l *Locks) Held() bool { return len(l.holders)+len(l.queue) > 0 }
