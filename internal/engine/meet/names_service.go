package meet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// MaxServiceName is the maximum length of a service's name in bytes.
const MaxServiceName = 255

// PublishName publishes the name of a port under that of a service (MPI-4.1, 11.9.4).
func PublishName(p *proc.Process, service string, info *proc.Info, port string) error {
	_, err := aboutName(p, wireup.KindPublish, service, info, port)
	return err
}

// UnpublishName takes back what this job has published (MPI-4.1, 11.9.4).
func UnpublishName(p *proc.Process, service string, info *proc.Info, port string) error {
	_, err := aboutName(p, wireup.KindUnpublish, service, info, port)
	return err
}

// LookupName returns the port's name that is published under a service's (MPI-4.1, 11.9.4).
func LookupName(p *proc.Process, service string, info *proc.Info) (string, error) {
	return aboutName(p, wireup.KindLookup, service, info, "")
}

func aboutName(p *proc.Process, kind wireup.Kind, service string, info *proc.Info, port string) (string, error) {
	x, err := nameInfo(info)
	switch {
	case err != nil:
		return "", err
	case service == "" || len(service) > MaxServiceName || strings.ContainsRune(service, 0):
		return "", fmt.Errorf("%w: a service's name of %d bytes; 1 to %d without a zero byte are possible", proc.ErrArg, len(service), MaxServiceName)
	case len(port) > dynamic.MaxPortName || strings.ContainsRune(port, 0):
		return "", fmt.Errorf("%w: %d bytes; up to %d without a zero byte are possible", dynamic.ErrPort, len(port), dynamic.MaxPortName)
	}
	x.Service, x.Port = service, port
	p.Lock()
	defer p.Unlock()
	if err := mayMeet(p); err != nil {
		return "", err
	}
	d, err := p.Node.Ask(wireup.Message{Kind: kind, Meeting: x}, dynamic.WorldID{})
	if m := d.Msg.Meeting; m != nil && m.Class != 0 {
		return "", nameFault(mpierr.Class(m.Class), d.Msg.Reason)
	}
	if err != nil {
		return "", err
	}
	return d.Msg.Meeting.Port, nil
}

func nameInfo(info *proc.Info) (*wireup.OtherWorld, error) {
	hints, err := construct.Snapshot(info)
	if err != nil {
		return nil, err
	}
	x := &wireup.OtherWorld{}
	if x.Timeout, err = seconds(hints, "timeout"); err != nil || hints == nil {
		return x, err
	}
	scope, ok, err := hints.Value("scope")
	if ok {
		x.Info = map[string]string{"scope": scope}
	}
	return x, err
}

// nameFault returns an error of one of the classes for names that MPI has (MPI-4.1, 11.9.4).
func nameFault(class mpierr.Class, reason string) error {
	kind := proc.ErrNames
	switch class {
	case mpierr.Service:
		kind = proc.ErrService
	case mpierr.Name:
		kind = proc.ErrName
	case mpierr.Access:
		kind = proc.ErrNamesDenied
	case mpierr.InfoValue:
		kind = proc.ErrInfoValue
	case mpierr.Arg:
		kind = proc.ErrArg
	default: // the server cannot be reached
	}
	return fmt.Errorf("%w: %s", kind, reason)
}

// seconds returns the value of an info key as a duration; 0 if the key is not set.
func seconds(hints *proc.Info, key string) (time.Duration, error) {
	if hints == nil {
		return 0, nil
	}
	v, ok, err := hints.Value(key)
	if err != nil || !ok {
		return 0, err
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || !(n > 0 && n <= 1e6) {
		return 0, fmt.Errorf("%w: %s %q is no number of seconds", proc.ErrInfoValue, key, v)
	}
	return time.Duration(n * float64(time.Second)), nil
}
