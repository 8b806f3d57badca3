package relay

// Counts returns how many bytes went over this side, if it is counted. No other
// call may be in progress.
func (l *Link) Counts() (sent, received uint64) {
	if e := l.end.Load(); e != nil {
		if c, ok := (*e).(interface {
			Counts() (sent, received uint64)
		}); ok {
			return c.Counts()
		}
	}
	return 0, 0
}
