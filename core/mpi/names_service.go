package mpi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/wireup"
)

// MaxServiceName is the most bytes of a service's name.
const MaxServiceName = 255

// The faults of names.
var ()

// PublishName has other procs find port by the name of service (MPI_Publish_name): those
// of this job, or of all jobs that share a server for names, as the job file's names
// block says. It blocks until the server has answered.
//
// A service has a name of 1 to MaxServiceName bytes without a zero byte. port is kept as
// it is, up to dynamic.MaxPortName bytes, whether it is a port or not. The name is the
// job's: it ends with it, and only procs of the job can unpublish it.
//
// Info keys: scope, the scope of the name in the place of the job file's, where "job"
// stands for this job alone; timeout, the seconds to wait for the server at most (10).
//
// Errors: ErrService for a name that is published already; ErrNames; ErrNamesDenied;
// ErrArg for a bad service; dynamic.ErrPort for a bad port; ErrInfo, ErrInfoValue;
// ErrAlone where no other procs can be met.
func PublishName(service string, info *Info, port string) error {
	p, err := current()
	if err != nil {
		return failed("PublishName", err)
	}
	return p.publishName(service, info, port)
}

// UnpublishName ends what PublishName began, with the same info keys
// (MPI_Unpublish_name). The port is not looked at. The errors are those of PublishName;
// ErrService if this job has not published the service.
func UnpublishName(service string, info *Info, port string) error {
	p, err := current()
	if err != nil {
		return failed("UnpublishName", err)
	}
	return p.unpublishName(service, info, port)
}

// LookupName gives the port that was published for a service (MPI_Lookup_name), with
// the info keys of PublishName. It does not wait until somebody publishes it: that is
// ErrName, and one may ask again. The other errors are those of PublishName.
func LookupName(service string, info *Info) (port string, err error) {
	p, err := current()
	if err != nil {
		return "", failed("LookupName", err)
	}
	return p.lookupName(service, info)
}

func (p *process) publishName(service string, info *Info, port string) error {
	_, err := p.aboutName(wireup.KindPublish, service, info, port)
	return p.failed("PublishName", err)
}

func (p *process) unpublishName(service string, info *Info, port string) error {
	_, err := p.aboutName(wireup.KindUnpublish, service, info, port)
	return p.failed("UnpublishName", err)
}

func (p *process) lookupName(service string, info *Info) (string, error) {
	port, err := p.aboutName(wireup.KindLookup, service, info, "")
	return port, p.failed("LookupName", err)
}

// aboutName asks the node something about a name, and gives the port of its answer.
func (p *process) aboutName(kind wireup.Kind, service string, info *Info, port string) (string, error) {
	x, err := nameInfo(info)
	switch {
	case err != nil:
		return "", err
	case service == "" || len(service) > MaxServiceName || strings.ContainsRune(service, 0):
		return "", fmt.Errorf("%w: a service's name of %d bytes; 1 to %d without a zero byte are possible", ErrArg, len(service), MaxServiceName)
	case len(port) > dynamic.MaxPortName || strings.ContainsRune(port, 0):
		return "", fmt.Errorf("%w: %d bytes; up to %d without a zero byte are possible", dynamic.ErrPort, len(port), dynamic.MaxPortName)
	}
	x.Service, x.Port = service, port
	p.lock()
	defer p.unlock()
	if err := p.mayMeet(); err != nil {
		return "", err
	}
	d, err := p.ask(wireup.Message{Kind: kind, Meeting: x}, dynamic.World{})
	if m := d.msg.Meeting; m != nil && m.Class != 0 {
		return "", nameFault(mpierr.Class(m.Class), d.msg.Reason)
	}
	if err != nil {
		return "", err
	}
	return d.msg.Meeting.Port, nil
}

// nameInfo takes the info keys about names.
func nameInfo(info *Info) (*wireup.Meeting, error) {
	hints, err := snapshot(info)
	if err != nil {
		return nil, err
	}
	x := &wireup.Meeting{}
	if x.Timeout, err = seconds(hints, "timeout"); err != nil || hints == nil {
		return x, err
	}
	scope, ok, err := hints.value("scope")
	if ok {
		x.Info = map[string]string{"scope": scope}
	}
	return x, err
}

// nameFault is the error of a request about a name that failed.
func nameFault(class mpierr.Class, reason string) error {
	kind := ErrNames
	switch class {
	case mpierr.Service:
		kind = ErrService
	case mpierr.Name:
		kind = ErrName
	case mpierr.Access:
		kind = ErrNamesDenied
	case mpierr.InfoValue:
		kind = ErrInfoValue
	case mpierr.Arg:
		kind = ErrArg
	default: // it cannot be reached
	}
	return fmt.Errorf("%w: %s", kind, reason)
}

// seconds is the time that a key of an info gives; 0 without one.
func seconds(hints *Info, key string) (time.Duration, error) {
	if hints == nil {
		return 0, nil
	}
	v, ok, err := hints.value(key)
	if err != nil || !ok {
		return 0, err
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || !(n > 0 && n <= 1e6) {
		return 0, fmt.Errorf("%w: %s %q is no number of seconds", ErrInfoValue, key, v)
	}
	return time.Duration(n * float64(time.Second)), nil
}
