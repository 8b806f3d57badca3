package mpi

// Statusany is Testany that leaves the request as it is
// (MPI_Request_get_status_any).
func Statusany(reqs []Request) (i int, done bool, st Status, err error) {
	progress(reqs)
	any := false
	for i := range reqs {
		q := &reqs[i]
		if q.state == null || q.state == inactive {
			continue
		}
		any = true
		if done, st, err := q.peek(); done || err != nil {
			return i, done, st, q.c.failed("Statusany", err)
		}
	}
	return Undefined, !any, emptyStatus, nil
}

// Statusall is Testall that leaves the requests as they are
// (MPI_Request_get_status_all).
func Statusall(reqs []Request, statuses []Status) (done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return false, noted(reqs).failed("Statusall", err)
	}
	for i := range reqs {
		if done, err := reqs[i].ready(); err != nil || !done {
			return false, reqs[i].c.failed("Statusall", err)
		}
	}
	for i := range reqs {
		if statuses == nil {
			break
		}
		if _, statuses[i], err = reqs[i].peek(); err != nil {
			return true, reqs[i].c.failed("Statusall", err)
		}
	}
	return true, nil
}

// Statussome is Testsome that leaves the requests as they are
// (MPI_Request_get_status_some).
func Statussome(reqs []Request, statuses []Status) (indices []int, done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return nil, false, noted(reqs).failed("Statussome", err)
	}
	progress(reqs)
	any := false
	for i := range reqs {
		q := &reqs[i]
		if q.state == null || q.state == inactive {
			continue
		}
		any = true
		done, st, err := q.peek()
		if err != nil {
			return indices, true, q.c.failed("Statussome", err)
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
