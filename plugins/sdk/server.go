package sdk

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

type sender interface {
	Send(r *handover.Record, deadline time.Time) error
}

type server struct {
	proto.UnimplementedTransportServer
	t     transports.Transport
	stats func() map[string]float64

	protocols []int        // protocol versions to offer
	version   atomic.Int32 // the version in use

	fds    sender
	life   context.Context // ends with the server
	end    context.CancelFunc
	calls  *calls
	events *events
	links  *links
	pumps  *pumps
	lastID atomic.Uint64 // of links and listeners

	mu        sync.Mutex
	draining  bool
	dialling  int
	quiet     chan struct{} // closed when draining and no dial is running
	listeners map[uint64]*listening

	dials, dialErrors, accepts, handedOver atomic.Uint64
}

func newServer(o Options, fds sender) *server {
	s := &server{
		t: o.Transport, stats: o.Stats, fds: fds, events: newEvents(),
		quiet: make(chan struct{}), listeners: make(map[uint64]*listening),
		protocols: o.Protocols,
	}
	if s.protocols == nil {
		s.protocols = proto.Versions()
	}
	s.version.Store(proto.Version)
	s.life, s.end = context.WithCancel(context.Background())
	s.links, s.pumps = newLinks(s.events), newPumps(s.life)
	s.calls = newCalls(s.life, s.undo)
	return s
}

// Info returns the transport's name, version and protocols.
func (s *server) Info(context.Context, *proto.InfoRequest) (*proto.InfoResponse, error) {
	i := s.t.Info()
	answer := &proto.InfoResponse{Name: i.Name, Version: i.Version, Vendor: i.Vendor, Sdk: sdkName, Pid: uint32(os.Getpid())}
	if s.version.Load() >= 2 {
		answer.Protocols = s.speaks()
	}
	return answer, nil
}

// Schema lists the settings.
func (s *server) Schema(context.Context, *proto.SchemaRequest) (*proto.SchemaResponse, error) {
	settings, err := proto.FromSchema(s.t.Schema())
	if err != nil {
		return nil, status.Errorf(codes.Internal, "schema of %s: %v", s.t.Info().Name, err)
	}
	return &proto.SchemaResponse{Settings: settings}, nil
}

// Configure passes the settings to the transport.
func (s *server) Configure(_ context.Context, req *proto.ConfigureRequest) (*proto.ConfigureResponse, error) {
	err := s.t.Configure(proto.ToSettings(req.GetSettings()))
	return &proto.ConfigureResponse{Error: proto.FromConfigureError(err)}, nil
}

// Capabilities returns the capabilities of the links, with all data planes that this package adds.
func (s *server) Capabilities(context.Context, *proto.CapabilitiesRequest) (*proto.CapabilitiesResponse, error) {
	c := s.t.Capabilities()
	c.DataPlanes = Extended(c.DataPlanes)
	answer := proto.FromCapabilities(c)
	answer.RingLayouts, answer.WakeMethods = []uint32{proto.RingLayout}, []string{proto.WakeSocket}
	return answer, nil
}

// Abandon cancels an earlier request.
func (s *server) Abandon(_ context.Context, req *proto.AbandonRequest) (*proto.AbandonResponse, error) {
	s.calls.abandon(req.GetKey())
	return &proto.AbandonResponse{}, nil
}

// undo reverses a request that was abandoned after it had succeeded.
func (s *server) undo(answer any) {
	switch a := answer.(type) {
	case *proto.DialResponse:
		s.links.close(a.GetLinkId())
	case *proto.ListenResponse:
		s.stopListen(a.GetListenerId())
	}
}

// Events sends events until the node ends the call.
func (s *server) Events(req *proto.EventsRequest, stream grpc.ServerStreamingServer[proto.Event]) error {
	return s.events.follow(stream.Context(), req.GetAfter(), stream.Send)
}

// Drain closes the listeners and waits for running dials, and for the bytes of links that
// their procs have closed.
func (s *server) Drain(ctx context.Context, _ *proto.DrainRequest) (*proto.DrainResponse, error) {
	s.mu.Lock()
	if !s.draining {
		s.draining = true
		s.checkQuiet()
	}
	s.mu.Unlock()
	s.stopListeners()
	select {
	case <-s.quiet:
		s.pumps.Flush(ctx)
		s.drainTransport(ctx)
		return &proto.DrainResponse{}, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &proto.DrainResponse{Unfinished: uint32(s.dialling)}, nil
}

// checkQuiet tells Drain when the last dial has ended. The caller holds mu.
func (s *server) checkQuiet() {
	if s.draining && s.dialling == 0 {
		close(s.quiet)
	}
}

// Stats returns how many links were dialled, accepted and handed over since the plugin started.
func (s *server) Stats(context.Context, *proto.StatsRequest) (*proto.StatsResponse, error) {
	out := &proto.StatsResponse{
		Dials: s.dials.Load(), DialErrors: s.dialErrors.Load(), Accepts: s.accepts.Load(), HandedOver: s.handedOver.Load(),
	}
	if s.stats != nil {
		out.Vendor = s.stats()
	}
	out.Links, out.Retransmits = s.pumps.estimates()
	if x, ok := s.t.(interface{ Retransmits() uint64 }); ok {
		out.Retransmits += x.Retransmits()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Listeners, out.Waiting, out.Pumped = uint32(len(s.listeners)), s.links.count(), uint32(s.pumps.Len())
	return out, nil
}

func (s *server) close() {
	s.end()
	s.stopListeners()
	s.pumps.Close()
	s.links.closeAll()
	s.closeTransport()
}

func (s *server) nextID() uint64 { return s.lastID.Add(1) }
