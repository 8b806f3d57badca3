package startup

import (
	"errors"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
	"strings"
	"testing"
	"time"
)

// A client that declines sends its rank and the reason, and nothing else; the job fails,
// and all other clients receive the reason.
func TestClientThatDeclinesEndsTheJob(t *testing.T) {
	now := time.Unix(1000, 0)
	s, err := NewServer(ServerConfig{Clients: 2, Auth: Auth{HasKey: true, Key: 7}}, now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(ClientConfig{Rank: 1, Auth: Auth{HasKey: true, Key: 7}, Decline: errors.New("proc 0 of site beta exited with status 5")})
	if err != nil {
		t.Fatal(err)
	}
	s.Accept(0, "127.0.0.1:1", unproved.Source{}, now)
	c.Start(now)
	for range 4 {
		s.Receive(0, c.Output(), now)
		for {
			a, ok := s.Next()
			if !ok {
				break
			}
			if a.Kind == ActSend {
				_ = c.Receive(a.Bytes, now)
			}
		}
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "client 1: proc 0 of site beta exited with status 5") {
		t.Errorf("the client: %v", err)
	}
	if _, err := s.Ended(); !errors.Is(err, ErrFailed) || !strings.HasSuffix(err.Error(), "client 1 (127.0.0.1:1): ended the job: proc 0 of site beta exited with status 5") {
		t.Errorf("the server: %v", err)
	}
}
