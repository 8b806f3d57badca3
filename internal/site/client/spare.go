package client

import (
	"context"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/site/server"
)

// JoinSpare gets the job of a spare site from its server, however long the job's sites take to
// meet. Other hosts of the site than its head get only the job's token: there job is nil.
func (m *Client) JoinSpare(ctx context.Context) (job *startup.Job, token dynamic.Token, err error) {
	o := m.Cluster
	if !o.IsHead() {
		b, err := o.tree.Load().Report(ctx, []byte{1})
		if err != nil {
			return nil, token, o.Failed(ctx, err)
		}
		copy(token[:], b)
		return nil, token, nil
	}
	if o != nil {
		if _, err := o.tree.Load().Gather(ctx, []byte{1}); err != nil {
			return nil, token, o.Failed(ctx, err)
		}
	}
	cfg := startup.ClientConfig{Spare: true, Auth: server.AuthOf(m.Routes.Site.Auth), Dialect: Dialect(*m.Routes.Site), Limit: m.Routes.Job.Limits.Start}
	if job, err = m.meet(ctx, cfg); err != nil {
		return nil, token, err
	}
	if o != nil {
		o.tree.Load().Start(job.Token[:])
	}
	return job, job.Token, nil
}

// AwaitHead waits, at another host of a spare site than its head, until the head reports that the
// job is over.
func (m *Client) AwaitHead(ctx context.Context) error {
	select {
	case <-m.Cluster.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AwaitServerEnd reports to a spare site how the job's server ends the job: said gets the failure,
// or nil if the job went well. lost is called instead if the server is lost. AwaitServerEnd returns
// when one of them was called, or the site has left.
func (m *Client) AwaitServerEnd(said func(*ending.Failure), lost func(why string)) {
	select {
	case <-m.left:
		return
	case <-m.session.Ended():
	}
	switch err := m.session.Err(); {
	case err == nil:
		said(nil)
	case startup.OutcomeAtServer(err) != startup.JobFailed:
		m.lost.Store(&serverLoss{time.Now(), causeOf(err)})
		lost(causeOf(err))
	default:
		said(m.serverSaid(err))
	}
}

// LeaveSpare ends the connection of a spare site with its server: the job is over, or continues
// without the site.
func (m *Client) LeaveSpare() { m.leaving.Do(func() { close(m.left) }) }
