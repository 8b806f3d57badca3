package startup

import (
	"errors"
	"testing"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// kinds are the actions that a server has left, without their bytes.
func kinds(s *Server) (sends, closes, refused int, failed error) {
	for {
		a, ok := s.Next()
		switch {
		case !ok:
			return sends, closes, refused, failed
		case a.Kind == ActSend:
			sends++
		case a.Kind == ActClose:
			closes++
		case a.Event.Kind == EventRefused:
			refused++
		case a.Event.Kind == EventFailed:
			failed = a.Event.Err
		}
	}
}

// TestOwnerRefuses: a connection that the owner refuses ends, with the reason sent and
// logged; a client's connection stays, and a connection that is forgotten leaves no trace.
func TestOwnerRefuses(t *testing.T) {
	now := time.Unix(0, 0)
	s, err := NewServer(ServerConfig{Clients: 2, Auth: Auth{None: true, HasKey: true, Key: 7}}, now)
	if err != nil {
		t.Fatal(err)
	}
	for id := ConnID(1); id <= 5; id++ {
		s.Accept(id, "peer", unproved.Source{}, now)
	}
	s.Refuse(1, errors.New("no TLS"))
	if sends, closes, refused, _ := kinds(s); sends != 1 || closes != 1 || refused != 1 {
		t.Errorf("refused: %d sends, %d closes, %d events", sends, closes, refused)
	}
	s.Forget(2)
	s.Closed(2, nil)
	s.Refuse(2, errors.New("too late"))
	if sends, closes, refused, _ := kinds(s); sends+closes+refused != 0 {
		t.Errorf("forgotten: %d sends, %d closes, %d events", sends, closes, refused)
	}
	s.Receive(3, wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), 0), now)
	kinds(s)
	s.Refuse(3, errors.New("a client"))
	s.WrongKey(3, now)
	s.Forget(3)
	if sends, closes, refused, _ := kinds(s); sends+closes+refused != 0 {
		t.Errorf("a client: %d sends, %d closes, %d events", sends, closes, refused)
	}
	s.WrongKey(4, now)
	s.WrongKey(5, now)
	if sends, closes, refused, _ := kinds(s); sends != 1 || closes != 1 || refused != 1 {
		t.Errorf("two wrong keys, of which one is told at once: %d sends, %d closes, %d events", sends, closes, refused)
	}
	s.Tick(now.Add(5 * time.Second))
	if sends, closes, refused, _ := kinds(s); sends != 1 || closes != 1 || refused != 1 {
		t.Errorf("the second one later: %d sends, %d closes, %d events", sends, closes, refused)
	}
	if ended, err := s.Ended(); ended {
		t.Errorf("wrong keys have ended the job: %v", err)
	}
}
