package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/cluster"
	"github.com/openimpi/impi/internal/site/report"
)

// joinWithOthers takes the site through startup: the head for all hosts.
func (m *Client) joinWithOthers(ctx context.Context, own startup.ClientConfig) error {
	part, err := cluster.EncodePart(own.Hosts[0])
	if err != nil {
		return err
	}
	return m.together(ctx, part, own)
}

// together is joinWithOthers for a host with a part, which is empty if its procs have all ended
// without being in MPI.
func (m *Client) together(ctx context.Context, part []byte, own startup.ClientConfig) error {
	o := m.Cluster
	if !o.IsHead() {
		defer report.LogWait(m.Log, m.Deadline, func() string { return "the other hosts of the site, and the other sites" })()
		b, err := o.tree.Load().Report(ctx, part)
		if err != nil {
			return o.Failed(ctx, err)
		}
		if len(b) == 0 {
			return ErrWithoutMPI
		}
		m.Routes.World, m.Token, err = cluster.DecodeJob(b)
		return err
	}
	stop := report.LogWait(m.Log, m.Deadline, o.waitsFor)
	parts, err := o.tree.Load().Gather(ctx, part)
	stop()
	if err != nil {
		return o.Failed(ctx, err)
	}
	if err := o.withoutMPI(parts); err != nil {
		return err
	}
	own.Hosts = own.Hosts[:0]
	for i, b := range parts {
		h, err := cluster.DecodePart(b, o.Procs(i))
		if err != nil {
			return fmt.Errorf("host %s: %w", o.name(i), err)
		}
		own.Hosts = append(own.Hosts, h)
	}
	if err := m.joinServer(ctx, own); err != nil {
		return err
	}
	job, err := cluster.EncodeJob(m.Routes.World, m.Token)
	if err != nil {
		return err
	}
	o.tree.Load().Start(job)
	return nil
}

// ErrWithoutMPI means that all procs of a job have ended well, and none has called Init.
var ErrWithoutMPI = errors.New("no proc has called MPI Init")

// JoinWithoutMPI is Join for a node whose procs have all ended with status 0 without a call of
// Init. It returns ErrWithoutMPI if all procs of all other hosts have, too.
func (m *Client) JoinWithoutMPI(ctx context.Context) error {
	if m.Cluster == nil {
		return ErrWithoutMPI
	}
	return m.together(ctx, nil, startup.ClientConfig{})
}

// withoutMPI, at the head, returns an error if the procs of some hosts are not in MPI. If those of
// no host are, the other hosts are told, and the error is ErrWithoutMPI.
func (o *Cluster) withoutMPI(parts [][]byte) error {
	var without []bool
	for _, part := range parts {
		without = append(without, len(part) == 0)
	}
	done, f := ending.WithoutMPI(o.Routes.Site.Name, without, o.names)
	switch {
	case f != nil:
		return f
	case done:
		o.tree.Load().Start(nil)
		return ErrWithoutMPI
	}
	return nil
}
