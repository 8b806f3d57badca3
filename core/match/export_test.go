package match

// Steps counts entries and table slots looked at since the beginning.
func (q *queue[V]) Steps() uint64 { return q.steps + q.table.steps }
