package rendezvous

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
)

// TestSpareSites: they join before and after all clients have come, over TLS or plain, with a
// session that is resumed or without, and hear how the job ends.
func TestSpareSites(t *testing.T) {
	key := startup.Auth{HasKey: true, Key: 5678}
	spare := startup.ClientConfig{Spare: true, Auth: key, Limit: time.Minute}
	for name, own := range map[string]*OwnServer{"plain": nil, "TLS": {NeedTLS: true}, "resumed": {NeedTLS: true, Resume: time.Minute}} {
		for _, fails := range []bool{false, true} {
			srv := serve(t, startup.ServerConfig{Clients: 1, Auth: key, Spares: 2})
			set := Settings{Server: srv.addr, Own: own}
			early := make(chan joined, 1)
			go func() {
				s, j, err := Join(t.Context(), set, spare)
				early <- joined{s, j, err}
			}()
			first := client(0)
			first.Auth = key
			c, _, err := Join(t.Context(), set, first)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all := []joined{<-early}
			s, j, err := Join(t.Context(), set, spare)
			for _, x := range append(all, joined{s, j, err}) {
				if x.err != nil {
					t.Fatalf("%s: %v", name, x.err)
				}
				if x.j.Procs.Len() != 1 || string(x.j.Procs.At(0).Card) != "card" || x.j.Self != startup.NoClient {
					t.Errorf("%s: %+v", name, x.j)
				}
			}
			_, _, err = Join(t.Context(), set, spare)
			wantError(t, name+": one too many", err, startup.ErrFailed, "it has 2 already")
			wrong := spare
			wrong.Auth.Key = 1
			_, _, err = Join(t.Context(), set, wrong)
			if err == nil || !strings.Contains(err.Error(), "key") {
				t.Errorf("%s: with a wrong key: %v", name, err)
			}
			if fails {
				_ = c.Fail(errors.New("rank 0 was killed"))
			} else if err := c.Finish(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, x := range append(all, joined{s, j, nil}) {
				<-x.s.Ended()
				if err := x.s.Err(); fails && (err == nil || !strings.Contains(err.Error(), "rank 0 was killed")) || !fails && err != nil {
					t.Errorf("%s, fails %t: %v", name, fails, err)
				}
			}
			if err := <-srv.result; (err != nil) != fails {
				t.Errorf("%s, fails %t: the server: %v", name, fails, err)
			}
		}
	}
}

// TestSpareSiteWaitsForClients: no deadline of its own ends the wait.
func TestSpareSiteWaitsForClients(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 1, Spares: 1})
	result := make(chan joined, 1)
	go func() {
		s, j, err := Join(t.Context(), Settings{Server: srv.addr}, startup.ClientConfig{Spare: true, Auth: startup.Auth{None: true}, Limit: time.Second})
		result <- joined{s, j, err}
	}()
	select {
	case r := <-result:
		t.Fatalf("it has not waited: %v", r.err)
	case <-time.After(time.Second + startup.Grace + time.Second):
	}
	c := mustJoin(t, srv.addr, client(0))[0]
	r := <-result
	if r.err != nil {
		t.Fatal(r.err)
	}
	if err := c.Finish(); err != nil {
		t.Error(err)
	}
	<-r.s.Ended()
	if err := r.s.Err(); err != nil {
		t.Error(err)
	}
	if err := <-srv.result; err != nil {
		t.Error(err)
	}
}
