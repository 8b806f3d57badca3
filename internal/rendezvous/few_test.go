package rendezvous

import (
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/startup"
)

// TestIdleConnsWithFewFiles: a server that may have few file descriptors keeps some of them for
// its clients, however many connect, and from however many addresses.
func TestIdleConnsWithFewFiles(t *testing.T) {
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: had.Max}); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, startup.ServerConfig{Clients: 1})
	first, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, _ = first.Write([]byte("nonsense, which is answered"))
	_, _ = first.Read(make([]byte, 1)) // then the server has looked how many files there may be
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	const idle, most = 300, 2 * 256 / 4 / 3 // that are waiting, and leaving
	ended := make(chan bool, idle)
	for i := range idle {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i/250), byte(1+i%250))}}
		nc, err := d.DialContext(t.Context(), "tcp", srv.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		go func() {
			for err == nil { // what it says before it closes is read, and not answered
				_, err = nc.Read(make([]byte, 512))
			}
			ended <- true
		}()
	}
	for range idle - most {
		<-ended
	}
	mustJoin(t, srv.addr, client(0))[0].Finish()
	if err := <-srv.result; err != nil {
		t.Error(fmt.Errorf("the job: %w", err))
	}
}
