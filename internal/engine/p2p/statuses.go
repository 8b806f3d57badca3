package p2p

import "github.com/openimpi/impi/internal/engine/proc"

func Statusany(reqs []proc.Request) (i int, done bool, st proc.Status, err error) {
	progress(reqs)
	any := false
	for i := range reqs {
		q := &reqs[i]
		if q.State == proc.Null || q.State == proc.Inactive {
			continue
		}
		any = true
		if done, st, err := q.Peek(); done || err != nil {
			return i, done, st, q.Comm().Failed("Statusany", err)
		}
	}
	return proc.Undefined, !any, proc.EmptyStatus, nil
}

func Statusall(reqs []proc.Request, statuses []proc.Status) (done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return false, noted(reqs).Failed("Statusall", err)
	}
	for i := range reqs {
		if done, err := reqs[i].Ready(); err != nil || !done {
			return false, reqs[i].Comm().Failed("Statusall", err)
		}
	}
	for i := range reqs {
		if statuses == nil {
			break
		}
		if _, statuses[i], err = reqs[i].Peek(); err != nil {
			return true, reqs[i].Comm().Failed("Statusall", err)
		}
	}
	return true, nil
}

func Statussome(reqs []proc.Request, statuses []proc.Status) (indices []int, done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return nil, false, noted(reqs).Failed("Statussome", err)
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
			return indices, true, q.Comm().Failed("Statussome", err)
		}
		if !done {
			continue
		}
		if statuses != nil {
			statuses[len(indices)] = st
		}
		indices = append(indices, i)
	}
	return indices, len(indices) > 0 || !any, nil
}
