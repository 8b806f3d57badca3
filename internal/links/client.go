package links

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// The ways in which a node fails to answer.
var (
	ErrGone   = errors.New("the node is gone")
	ErrSilent = errors.New("the node does not answer")

	// ErrNotAsked means that there is no way to ask a node from here, which is no fault of the node.
	ErrNotAsked = errors.New("not asked")
)

// Ask sends a request to the control socket at path and waits for the answer until ctx
// ends; ctx must have a deadline.
func Ask(ctx context.Context, path string, r Request) (*Answer, error) {
	if _, ok := ctx.Deadline(); !ok {
		return nil, fmt.Errorf("%w: it has no deadline", ErrRequest)
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, dialFault(err)
	}
	defer nc.Close()
	if os.Geteuid() != 0 { // root may ask every node
		if err := checkPeer(nc.(*net.UnixConn)); err != nil {
			return nil, err
		}
	}
	client, err := rpc.Client(rpc.NewConn(nc, nil), maxAnswer)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	report, err := proto.NewControlClient(client).Ask(ctx, &proto.Question{
		Op: string(r.Op), All: r.All, Few: int64(r.AllUpTo), Local: int64(r.Local), Peer: int64(r.Peer),
		Transport: r.Transport, Force: r.Force, Host: r.Host, Number: int64(r.Number), Here: r.Here, Sites: r.Sites, Calls: r.Calls, Account: r.Account,
		Log: r.Log, ByHost: r.ByHost,
	})
	if err != nil {
		return nil, callFault(err)
	}
	var a Answer
	if err := json.Unmarshal(report.Json, &a); err != nil {
		return nil, fmt.Errorf("%w: its answer cannot be read: %w", ErrRequest, err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return &a, nil
}

func dialFault(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return ErrGone
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return ErrSilent // its backlog is full
	}
	return err
}

func callFault(err error) error {
	switch s := status.Convert(err); s.Code() {
	case codes.DeadlineExceeded:
		return ErrSilent
	case codes.Unavailable:
		// gRPC's pings, or its greeting, have had no answer. The text may have the path of a socket.
		if strings.Contains(s.Message(), "keepalive ping failed") || strings.Contains(s.Message(), ": i/o timeout") {
			return ErrSilent
		}
		return ErrGone
	case codes.Unimplemented:
		return fmt.Errorf("%w: %s: ask with the impi-node that the job runs with", ErrRequest, s.Message())
	default:
		return errors.New(s.Message())
	}
}
