package sdk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestInfo(t *testing.T) {
	s := serve(t, &fake{})
	i, err := s.TransportClient.Info(soon(t), &proto.InfoRequest{Call: call("1")})
	if err != nil || i.Name != "fake" || i.Version != "3" || i.Vendor != "v" || i.Sdk == "" {
		t.Errorf("%v, %v", i, err)
	}
	c, err := s.TransportClient.Capabilities(soon(t), &proto.CapabilitiesRequest{Call: call("2")})
	// A connection that can be handed to a ring can be passed on by the rest, too.
	if err != nil || !slices.Equal(c.DataPlanes, []string{"ring", "fd", "stream", "grpc"}) {
		t.Errorf("data planes: %v, %v", c, err)
	}
}

func TestDialAndOpen(t *testing.T) {
	l, far := socketLink(t)
	s := serve(t, &fake{dial: func(_ context.Context, to transports.DialSpec) (link.Link, error) {
		if to != (transports.DialSpec{Address: "a", From: "b"}) {
			t.Errorf("dials %+v", to)
		}
		return l, nil
	}})
	d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("1"), Address: "a", From: "b"})
	if err != nil || d.Error != nil || d.LinkId == 0 {
		t.Fatal(d, err)
	}
	o, err := s.TransportClient.OpenDataPlane(soon(t), &proto.OpenDataPlaneRequest{Call: call("2"), LinkId: d.LinkId, Modes: []string{"ring", "fd"}})
	if err != nil || o.Error != nil || o.Mode != "fd" || !strings.Contains(o.Reason, "ring") {
		t.Fatal(o, err)
	}
	r, err := s.node.Receive()
	if err != nil || r.Kind != handover.KindLink || r.Link != d.LinkId || r.Mode != handover.ModeFD || len(r.FDs) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Close()
	ended(t, far) // no copy is left in the plugin
	o, err = s.TransportClient.OpenDataPlane(soon(t), &proto.OpenDataPlaneRequest{Call: call("3"), LinkId: d.LinkId, Modes: []string{"fd"}})
	if err != nil || o.Error == nil {
		t.Errorf("it can be opened twice: %v, %v", o, err)
	}
	st, err := s.TransportClient.Stats(soon(t), &proto.StatsRequest{Call: call("4")})
	if err != nil || st.Dials != 1 || st.HandedOver != 1 || st.Waiting != 0 || st.Vendor["x"] != 1 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestOpenRefused(t *testing.T) {
	for name, c := range map[string]struct {
		modes  []string
		hidden bool
		says   string
	}{
		"a link of no kind": {[]string{"fd"}, true, "it can do no data plane; the site's config allows fd"},
		"other mode":        {[]string{"peer-shm"}, false, "a kernel socket: it can do data plane fd, ring, stream, grpc; the site's config allows peer-shm"},
		"other rings":       {[]string{"ring"}, false, "the site's config allows ring"},
		"no mode":           {nil, false, "it can do data plane fd"},
	} {
		t.Run(name, func(t *testing.T) {
			l, far := socketLink(t)
			s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) {
				if c.hidden {
					return struct{ link.Link }{l}, nil
				}
				return l, nil
			}})
			d, _ := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("1")})
			o, err := s.TransportClient.OpenDataPlane(soon(t), &proto.OpenDataPlaneRequest{Call: call("2"), LinkId: d.GetLinkId(), Modes: c.modes, Pinned: true})
			if err != nil || o.GetError().GetCode() != "unsupported" || !strings.Contains(o.GetError().GetReason(), c.says) {
				t.Errorf("%v, %v", o, err)
			}
			ended(t, far)
		})
	}
}

// The same request twice, at once and later, dials once.
func TestDialIsNotRepeated(t *testing.T) {
	dials := make(chan struct{}, 10)
	release := make(chan struct{})
	l, _ := socketLink(t)
	s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) {
		dials <- struct{}{}
		<-release
		return l, nil
	}})
	answers := make(chan *proto.DialResponse, 3)
	dial := func() {
		d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("same")})
		if err != nil {
			t.Error(err)
		}
		answers <- d
	}
	go dial()
	<-dials
	go dial()
	close(release)
	first, second := <-answers, <-answers
	dial()
	third := <-answers
	if first.GetLinkId() == 0 || second.GetLinkId() != first.GetLinkId() || third.GetLinkId() != first.GetLinkId() {
		t.Errorf("%v, %v, %v", first, second, third)
	}
	if len(dials) != 0 || s.dials.Load() != 1 {
		t.Errorf("%d dials", s.dials.Load())
	}
}

// A request outlives the connection that brought it, and can be asked for again.
func TestDialOutlivesConnection(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	l, _ := socketLink(t)
	s := serve(t, &fake{dial: func(ctx context.Context, _ transports.DialSpec) (link.Link, error) {
		close(begun)
		<-release
		return l, ctx.Err()
	}})
	ctx, hangUp := context.WithCancel(context.Background())
	failed := make(chan error)
	go func() {
		_, err := s.TransportClient.Dial(ctx, &proto.DialRequest{Call: call("k")})
		failed <- err
	}()
	<-begun
	hangUp()
	if err := <-failed; status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	close(release)
	d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("k")})
	if err != nil || d.GetLinkId() == 0 {
		t.Errorf("%v, %v", d, err)
	}
}

func TestAbandon(t *testing.T) {
	abandon := func(s *served, key string) {
		t.Helper()
		if _, err := s.TransportClient.Abandon(soon(t), &proto.AbandonRequest{Call: call("abandon " + key), Key: key}); err != nil {
			t.Error(err)
		}
	}
	t.Run("running", func(t *testing.T) {
		begun := make(chan struct{})
		l, far := socketLink(t)
		s := serve(t, &fake{dial: func(ctx context.Context, _ transports.DialSpec) (link.Link, error) {
			close(begun)
			<-ctx.Done()
			return l, nil // too late to be any good
		}})
		go s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("k")})
		<-begun
		abandon(s, "k")
		ended(t, far)
	})
	t.Run("ended", func(t *testing.T) {
		l, far := socketLink(t)
		s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) { return l, nil }})
		s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("k")})
		abandon(s, "k")
		abandon(s, "k")
		ended(t, far)
	})
	t.Run("not come yet", func(t *testing.T) {
		s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) {
			t.Error("it is carried out")
			return nil, link.ErrClosed
		}})
		abandon(s, "k")
		if _, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("k")}); status.Code(err) != codes.Canceled {
			t.Error(err)
		}
	})
	t.Run("listener", func(t *testing.T) {
		s := serve(t, &fake{})
		s.TransportClient.Listen(soon(t), &proto.ListenRequest{Call: call("k")})
		abandon(s, "k")
		if st, err := s.TransportClient.Stats(soon(t), &proto.StatsRequest{Call: call("s")}); err != nil || st.Listeners != 0 {
			t.Errorf("%v, %v", st, err)
		}
	})
}

func TestCallIsChecked(t *testing.T) {
	s := serve(t, &fake{})
	for name, c := range map[string]*proto.Call{
		"none": nil, "no key": {TimeoutMs: 1}, "no time": {Key: "k"}, "long key": {Key: strings.Repeat("k", 65), TimeoutMs: 1},
	} {
		if _, err := s.TransportClient.Info(soon(t), &proto.InfoRequest{Call: c}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.TransportClient.Info(soon(t), &proto.InfoRequest{Call: call("k")})
	if _, err := s.TransportClient.Stats(soon(t), &proto.StatsRequest{Call: call("k")}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a key of another request: %v", err)
	}
}

func TestDialTimeLimit(t *testing.T) {
	s := serve(t, &fake{dial: func(ctx context.Context, _ transports.DialSpec) (link.Link, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: &proto.Call{Key: "k", TimeoutMs: 1}})
	if err != nil || d.GetError().GetCode() != "timeout" || !d.GetError().GetRetryable() {
		t.Errorf("%v, %v", d, err)
	}
}

func TestTransportReturnsNothing(t *testing.T) {
	s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) { return nil, nil }})
	d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("k")})
	if err != nil || d.GetError().GetCode() != "internal" || d.GetLinkId() != 0 {
		t.Errorf("%v, %v", d, err)
	}
}

func TestDrain(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) {
		close(begun)
		<-release
		return nil, link.ErrClosed
	}})
	s.TransportClient.Listen(soon(t), &proto.ListenRequest{Call: call("l")})
	go s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("d")})
	<-begun
	d, err := s.TransportClient.Drain(soon(t), &proto.DrainRequest{Call: &proto.Call{Key: "1", TimeoutMs: 1}})
	if err != nil || d.Unfinished != 1 {
		t.Errorf("with a dial running: %v, %v", d, err)
	}
	if st, _ := s.TransportClient.Stats(soon(t), &proto.StatsRequest{Call: call("s")}); st.GetListeners() != 0 {
		t.Errorf("%d listeners", st.GetListeners())
	}
	if d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("d2")}); err != nil || d.GetError().GetCode() != "resource" {
		t.Errorf("a dial: %v, %v", d, err)
	}
	if l, err := s.TransportClient.Listen(soon(t), &proto.ListenRequest{Call: call("l2")}); err != nil || l.GetError().GetCode() != "resource" {
		t.Errorf("a listen: %v, %v", l, err)
	}
	close(release)
	if d, err := s.TransportClient.Drain(soon(t), &proto.DrainRequest{Call: call("2")}); err != nil || d.Unfinished != 0 {
		t.Errorf("after it: %v, %v", d, err)
	}
}

func TestWireError(t *testing.T) {
	for code, err := range map[string]error{
		"timeout":  context.DeadlineExceeded,
		"resource": syscall.EMFILE,
		"internal": errors.New("x"),
		"refused":  &transports.Error{Code: transports.CodeRefused},
	} {
		if e := wireError(err); e.GetCode() != code {
			t.Errorf("%v is %v", err, e)
		}
	}
	if e := wireError(unix.ENOBUFS); !e.GetRetryable() {
		t.Error("not retryable")
	}
}
