package ending

import "fmt"

// WithoutMPI says what it means for a site that all procs of some of its hosts have ended well and
// have not called MPI_Init: of host i if without[i] is set. If it is so at all hosts, the site is
// done, and has nobody to join a job with. If it is so at some, that is a failure, as the other
// hosts wait for them. names names hosts of the site.
func WithoutMPI(site string, without []bool, names func(hosts []int) string) (done bool, f *Failure) {
	var hosts []int
	for i, x := range without {
		if x {
			hosts = append(hosts, i)
		}
	}
	switch len(hosts) {
	case 0:
		return false, nil
	case len(without):
		return true, nil
	}
	return false, &Failure{
		Text:   fmt.Sprintf("site %s: the procs of %s exited with status 0 before they called MPI Init, which others have called", site, names(hosts)),
		Status: 1, Precedence: Decided,
	}
}
