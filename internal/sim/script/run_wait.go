package script

import (
	"errors"

	"github.com/openimpi/impi/core/mpi"
)

type waiting struct {
	reqs     []mpi.Request
	statuses []mpi.Status // by request
	errs     []error
	done     []bool
	left     int
}

func (w *waiting) completed(i int, st mpi.Status, err error) error {
	if i < 0 || i >= len(w.done) || w.done[i] {
		return mismatch("request %d was completed again, or is none", i)
	}
	w.done[i], w.statuses[i], w.errs[i] = true, st, err
	w.left--
	return nil
}

func (r *runner) wait(s Wait) error {
	if s.Rank != r.me {
		return nil
	}
	r.log(s)
	n := len(s.Reqs)
	w := &waiting{
		reqs: make([]mpi.Request, n), statuses: make([]mpi.Status, n), errs: make([]error, n), done: make([]bool, n), left: n,
	}
	for i, q := range s.Reqs {
		w.reqs[i] = r.reqs[q].req
	}
	if err := r.complete(s.How, w); err != nil {
		return err
	}
	for i, q := range s.Reqs {
		r.reqs[q].req = w.reqs[i]
		if err := r.finish(q, w.statuses[i], w.errs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) complete(how CompleteBy, w *waiting) error {
	switch how {
	case HowWait, HowTest, HowGetStatus:
		return r.oneByOne(how, w)
	case HowWaitall, HowTestall:
		return r.allAtOnce(how, w)
	default: // a call completes one or some
		for w.left > 0 {
			if err := r.oneOrSome(how, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func (r *runner) oneOrSome(how CompleteBy, w *waiting) error {
	switch how {
	case HowWaitany:
		i, st, failure := mpi.Waitany(w.reqs)
		return w.completed(i, st, failure)
	case HowTestany:
		return r.again(func() (bool, error) {
			i, done, st, failure := mpi.Testany(w.reqs)
			if !done {
				return failure != nil, failed(failure)
			}
			return true, w.completed(i, st, failure)
		})
	case HowWaitsome:
		statuses := make([]mpi.Status, len(w.reqs))
		indices, failure := mpi.Waitsome(w.reqs, statuses)
		return w.some(indices, statuses, failure)
	default: // HowTestsome
		return r.again(func() (bool, error) {
			statuses := make([]mpi.Status, len(w.reqs))
			indices, done, failure := mpi.Testsome(w.reqs, statuses)
			if !done && failure == nil {
				return false, nil
			}
			return true, w.some(indices, statuses, failure)
		})
	}
}

func (w *waiting) some(indices []int, statuses []mpi.Status, failure error) error {
	if failure != nil && !errors.Is(failure, mpi.ErrInStatus) {
		return failed(failure)
	}
	if len(indices) == 0 {
		return mismatch("no request is active, but %d are open", w.left)
	}
	for k, i := range indices {
		if err := w.completed(i, statuses[k], statuses[k].Err); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) oneByOne(how CompleteBy, w *waiting) error {
	for i := range w.reqs {
		q := &w.reqs[i]
		if how == HowWait {
			st, failure := q.Wait()
			_ = w.completed(i, st, failure)
			continue
		}
		var seen mpi.Status
		err := r.again(func() (bool, error) {
			if how == HowGetStatus {
				done, st, err := q.Status()
				seen = st
				return done, failed(err)
			}
			done, st, failure := q.Test()
			if !done {
				return false, failed(failure)
			}
			return true, w.completed(i, st, failure)
		})
		if err != nil {
			return err
		}
		if how == HowGetStatus {
			st, failure := q.Wait()
			if failure == nil && (seen.Source != st.Source || seen.Tag != st.Tag || seen.Cancelled() != st.Cancelled()) {
				return mismatch("the status was %v and is %v", seen, st)
			}
			_ = w.completed(i, st, failure)
		}
	}
	return nil
}

func (r *runner) allAtOnce(how CompleteBy, w *waiting) (err error) {
	if how == HowWaitall {
		err = mpi.Waitall(w.reqs, w.statuses)
	} else {
		var failure error
		_ = r.again(func() (done bool, err error) {
			done, failure = mpi.Testall(w.reqs, w.statuses)
			return done || failure != nil, nil
		})
		err = failure
	}
	if err != nil && !errors.Is(err, mpi.ErrInStatus) {
		return failed(err)
	}
	for i, st := range w.statuses {
		_ = w.completed(i, st, st.Err)
	}
	return nil
}

func (r *runner) finish(q Req, st mpi.Status, err error) error {
	m, p := r.a.byID[q.Msg].m, r.reqs[q]
	delete(r.reqs, q)
	if st.Cancelled() {
		return mismatch("%s was cancelled, which nobody asked for", q)
	}
	if m.slot(q.Side) == 0 && !p.req.Null() {
		return mismatch("%s is complete, but not null", q)
	}
	if q.Side == SendSide {
		p.buf.fill(untouched) // the buffer is ours again
		if err != nil {
			return failed(err)
		}
		return r.matched(m)
	}
	return r.received(m, p.buf, st, err)
}
