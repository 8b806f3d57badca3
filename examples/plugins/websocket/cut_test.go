package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
)

// TestCutInsideFrame cuts a client off in the middle of a WebSocket frame. The server
// must see nothing but a beginning of what was sent, and then an error: a link that is
// resumed goes on behind what has come.
func TestCutInsideFrame(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprintf("reset=%v", reset), func(t *testing.T) {
			sent := bytes.Repeat([]byte("impi"), 64)
			got, err := receiveCut(t, sent, len(sent)/2, reset)
			if err == nil {
				t.Error("no error")
			}
			if !bytes.HasPrefix(sent, got) {
				t.Errorf("%d bytes that nobody has sent: %x", len(got), got)
			}
		})
	}
}

// receiveCut gives what a server reads of a client that sends a frame of data, of which
// only the first n bytes get through.
func receiveCut(t *testing.T, data []byte, n int, reset bool) (got []byte, err error) {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		c, failed := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol}})
		if failed != nil {
			err = failed
			return
		}
		defer c.CloseNow()
		got, err = io.ReadAll(streamOf(c))
	}))
	defer server.Close()
	c := rawClient(t, server.Listener.Addr().String())
	frame := maskedFrame(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	if _, err := c.Write(frame[:len(frame)-len(data)+n]); err != nil {
		t.Fatal(err)
	}
	if reset {
		_ = c.SetLinger(0)
	}
	_ = c.Close()
	<-done
	return got, err
}

// rawClient is a TCP connection on which a WebSocket has been agreed.
func rawClient(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: %s\r\n\r\n", address, protocol)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", answer, err)
	}
	return c.(*net.TCPConn)
}

// maskedFrame is a binary message of a client, RFC 6455 chapter 5.2.
func maskedFrame(payload []byte) []byte {
	mask := [4]byte{0x8f, 0x5a, 0xc3, 0x17}
	frame := binary.BigEndian.AppendUint16([]byte{0x82, 0x80 | 126}, uint16(len(payload)))
	frame = append(frame, mask[:]...)
	for i, b := range payload {
		frame = append(frame, b^mask[i%len(mask)])
	}
	return frame
}
