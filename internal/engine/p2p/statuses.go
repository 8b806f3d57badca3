package p2p

import "github.com/openimpi/impi/internal/engine/proc"

// GetStatusAny is Testany that leaves the requests as they are (MPI-4.1, 3.7.6).
func GetStatusAny(reqs []proc.Request) (c *proc.Comm, i int, done bool, st proc.Status, err error) {
	progress(reqs)
	any := false
	for i := range reqs {
		q := &reqs[i]
		if q.State == proc.Null || q.State == proc.Inactive {
			continue
		}
		any = true
		if done, st, err := q.Peek(); done || err != nil {
			return q.Comm(), i, done, st, err
		}
	}
	return nil, proc.Undefined, !any, proc.EmptyStatus, nil
}

func GetStatusAll(reqs []proc.Request, statuses []proc.Status) (c *proc.Comm, done bool, err error) {
	if c, done, err := allReady(reqs, statuses); err != nil || !done {
		return c, false, err
	}
	for i := range statuses {
		if _, statuses[i], err = reqs[i].Peek(); err != nil {
			return reqs[i].Comm(), true, err
		}
	}
	return nil, true, nil
}

func GetStatusSome(reqs []proc.Request, statuses []proc.Status) (c *proc.Comm, indices []int, done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return noted(reqs), nil, false, err
	}
	progress(reqs)
	any := false
	for i := range reqs {
		q := &reqs[i]
		if q.State == proc.Null || q.State == proc.Inactive {
			continue
		}
		any = true
		done, st, err := q.Peek()
		if err != nil {
			return q.Comm(), indices, true, err
		}
		if !done {
			continue
		}
		if statuses != nil {
			statuses[len(indices)] = st
		}
		indices = append(indices, i)
	}
	return nil, indices, len(indices) > 0 || !any, nil
}
