package kernel

// events is a heap of timers by time. Every step of the simulator uses it; container/heap would
// cost several interface calls each time.
type events []*Timer

func (t *Timer) before(u *Timer) bool {
	return t.at < u.at || t.at == u.at && t.tie < u.tie
}

func (e *events) push(t *Timer) {
	*e = append(*e, t)
	e.up(t, len(*e)-1)
}

func (e *events) remove(i int) {
	old := *e
	n := len(old) - 1
	old[i].index = -1
	last := old[n]
	old[n] = nil
	*e = old[:n]
	if i == n {
		return
	}
	if i > 0 && last.before(old[(i-1)/2]) {
		e.up(last, i)
	} else {
		e.down(last, i)
	}
}

func (e events) up(t *Timer, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(e[parent]) {
			break
		}
		e.put(e[parent], i)
		i = parent
	}
	e.put(t, i)
}

func (e events) down(t *Timer, i int) {
	for {
		child := 2*i + 1
		if child >= len(e) {
			break
		}
		if child+1 < len(e) && e[child+1].before(e[child]) {
			child++
		}
		if !e[child].before(t) {
			break
		}
		e.put(e[child], i)
		i = child
	}
	e.put(t, i)
}

func (e events) put(t *Timer, i int) {
	e[i] = t
	t.index = i
}
