package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rendezvous"
)

// The two processes of a repetition.
const (
	serverPart  = "server"
	clientsPart = "clients"
)

func isStartupPart(args []string) bool {
	return len(args) == 6 && args[0] == startupWord && (args[1] == serverPart || args[1] == clientsPart)
}

// runStartupPart: server|clients FILE CLIENTS HOSTS PROCS. The server writes its
// address into the file.
func runStartupPart(args []string) error {
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[2+i]); err != nil {
			return err
		}
	}
	o := startupOptions{clients: n[0], hosts: n[1], procs: n[2]}
	var r partResult
	var err error
	if args[0] == serverPart {
		err = o.serve(args[1])
	} else {
		err = o.join(args[1], &r)
	}
	if err != nil {
		return err
	}
	if r.PeakRSS, err = peakRSS(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// peakRSS returns the peak resident memory of this process, in bytes.
func peakRSS() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}

func (o startupOptions) serve(where string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	next := where + ".new" // renamed when complete
	if err := errors.Join(os.WriteFile(next, []byte(ln.Addr().String()), 0o600), os.Rename(next, where)); err != nil {
		return err
	}
	return rendezvous.Serve(context.Background(), ln, rendezvous.Config{
		Server: startup.ServerConfig{Clients: o.clients, Auth: startup.Auth{None: true}},
	})
}

// clientsMemory is the memory limit of the clients' process, in bytes, from which the garbage
// collector runs all the time.
const clientsMemory = 600 << 20

type synthetic struct {
	o        startupOptions
	server   string
	turns    chan struct{} // limits how many answers are parsed at a time
	seed     maphash.Seed
	up, down atomic.Int64
	start    sync.WaitGroup // done when all clients are ready to connect
	digests  []uint64
}

func (o startupOptions) join(where string, r *partResult) error {
	server, err := awaitAddress(where)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(clientsMemory) // one client's garbage must not wait for that of 31 others
	s := &synthetic{o: o, server: server, turns: make(chan struct{}, runtime.NumCPU()), seed: maphash.MakeSeed(), digests: make([]uint64, o.clients)}
	s.start.Add(o.clients + 1)
	errs := make(chan error, o.clients)
	for c := range o.clients {
		go func() { errs <- s.client(c) }()
	}
	s.start.Done()
	s.start.Wait()
	began := time.Now()
	for range o.clients {
		err = errors.Join(err, <-errs)
	}
	r.Seconds, r.Up, r.Down = time.Since(began).Seconds(), s.up.Load(), s.down.Load()
	for c, d := range s.digests {
		if err == nil && d != s.digests[0] {
			err = fmt.Errorf("client %d knows another job than client 0", c)
		}
	}
	return err
}

// awaitAddress waits for the server's file. The process that has started this one limits
// the time.
func awaitAddress(where string) (string, error) {
	for {
		b, err := os.ReadFile(where)
		if err == nil {
			return string(b), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		time.Sleep(time.Millisecond)
	}
}

// config returns the configuration of client c. Its procs have ascending pids, as those that one
// process has started mostly do, and no cards.
func (s *synthetic) config(c int) startup.ClientConfig {
	cfg := startup.ClientConfig{Rank: wire.ClientRank(c), Auth: startup.Auth{None: true}, Params: startup.DefaultParams(), Foreign: true}
	each := s.o.procs / s.o.clients / s.o.hosts
	for h := range s.o.hosts {
		id := wire.HostIDFrom(netip.AddrFrom4([4]byte{10, byte(c), byte(h >> 8), byte(h)}), wire.IPv4Compatible)
		host := startup.HostConfig{Address: id, Port: 5000, Procs: make([]startup.ProcConfig, each)}
		for i := range host.Procs {
			host.Procs[i].ID = wire.Proc{Host: id, PID: int64(h<<20 + i + 1)}
		}
		cfg.Hosts = append(cfg.Hosts, host)
	}
	return cfg
}

// client goes through startup and the end of the job. It checks the job that it gets and
// releases it, since all clients share this process's memory here.
func (s *synthetic) client(c int) error {
	m, err := startup.NewClient(s.config(c))
	s.start.Done()
	if err != nil {
		return err
	}
	s.start.Wait()
	nc, err := net.Dial("tcp", s.server)
	if err != nil {
		return err
	}
	defer nc.Close()
	m.Start(time.Now())
	if err := s.startup(nc, m, c); err != nil {
		return err
	}
	_ = nc.(*net.TCPConn).CloseWrite()
	_, err = io.Copy(io.Discard, nc)
	return err
}

// startup moves bytes until the client has its job. Once an answer has begun to arrive, the
// client waits for its turn: decoding the values of a million procs takes memory, and all
// clients of this process would do it at once.
func (s *synthetic) startup(nc net.Conn, m *startup.Client, c int) error {
	buf := make([]byte, 64<<10)
	mine := false
	rest := func() {
		if mine {
			<-s.turns
			mine = false
		}
	}
	defer rest()
	for {
		if err := s.send(nc, m); err != nil {
			return err
		}
		if job, ok := m.Job(); ok {
			return s.leave(nc, m, job, c)
		}
		n, err := nc.Read(buf)
		if err != nil {
			return errors.Join(m.Closed(err), err)
		}
		if !mine {
			s.turns <- struct{}{}
			mine = true
		}
		s.down.Add(int64(n))
		if err := m.Receive(buf[:n], time.Now()); err != nil {
			return err
		}
		if m.HasOutput() {
			rest()
		}
	}
}

func (s *synthetic) leave(nc net.Conn, m *startup.Client, job *startup.Job, c int) error {
	if job.Procs.Len() != s.o.procs {
		return fmt.Errorf("client %d knows %d procs", c, job.Procs.Len())
	}
	s.digests[c] = s.digest(job)
	return errors.Join(m.Finish(), s.send(nc, m))
}

func (s *synthetic) send(nc net.Conn, m *startup.Client) error {
	b := m.Output()
	s.up.Add(int64(len(b)))
	if len(b) == 0 {
		return nil
	}
	_, err := nc.Write(b)
	return err
}

// digest returns the same value for all clients that know the same procs.
func (s *synthetic) digest(j *startup.Job) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, p := range j.Procs.All() {
		maphash.WriteComparable(&h, p.ID)
		maphash.WriteComparable(&h, p.Host)
	}
	return h.Sum64()
}
