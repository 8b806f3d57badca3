package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	said, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"-delay", "1ms", "tcp", server.Addr().String()}, out, t.Output())
		_ = out.Close()
	}()
	lines := bufio.NewScanner(said)
	if !lines.Scan() {
		t.Fatal("it says nothing")
	}
	at := strings.Fields(lines.Text())[2]
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatalf("%q: %v", lines.Text(), err)
	}
	if _, err := c.Write([]byte("there and back")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 14)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "there and back" {
		t.Errorf("%v: %q came back", err, got)
	}
	_ = c.Close()
	stop()
	var rest bytes.Buffer
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	if status := <-ended; status != 0 || strings.Count(rest.String(), "\n") != 2 {
		t.Errorf("status %d, and in the end it says\n%s", status, &rest)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range []string{"", "tcp", "sctp 127.0.0.1:1", "-loss 101 udp 127.0.0.1:1", "-delay 2 udp 127.0.0.1:1", "-no udp 127.0.0.1:1"} {
		var log bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), io.Discard, &log); status != 2 || !strings.Contains(log.String(), "-help") {
			t.Errorf("%q: status %d, %s", args, status, &log)
		}
	}
	var log bytes.Buffer
	if status := run(t.Context(), []string{"-loss", "1", "tcp", "127.0.0.1:1"}, io.Discard, &log); status != 1 || !strings.Contains(log.String(), "kernel") {
		t.Errorf("TCP with losses: status %d, %s", status, &log)
	}
	var out bytes.Buffer
	if status := run(t.Context(), []string{"-help"}, &out, io.Discard); status != 0 || out.String() != help {
		t.Errorf("-help: status %d, %s", status, &out)
	}
}
