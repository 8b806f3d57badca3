package ui

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/internal/version"
)

// Bounds of what a browser can make the server do.
const (
	connections = 32
	headerLimit = 16 << 10
	readLimit   = 5 * time.Second
	writeLimit  = 30 * time.Second
	lookLimit   = 5 * time.Second        // maximum time for the nodes to answer
	fresh       = 500 * time.Millisecond // time for which a look is also used for other requests
)

//go:embed page
var pages embed.FS

// ErrListen is wrapped by the error for an address at which the page must not be served.
var ErrListen = errors.New("ui: not an address of this machine alone")

// AskFunc asks the nodes, until ctx ends.
type AskFunc func(ctx context.Context) []status.Job

// AwaitEndFunc waits until the nodes of a job, which an ID names, are about to end, and returns
// how; it returns nil if they do not report that, or ctx ends.
type AwaitEndFunc func(ctx context.Context, id string) *links.Ending

// Server serves the page.
type Server struct {
	http  http.Server
	at    netip.AddrPort
	token string
	look  AskFunc
	done  chan struct{}

	endings *endings

	mu     sync.Mutex // held during a look, so that there is one at a time
	jobs   []status.Job
	seen   time.Time
	motion status.StallTracker
}

// examplePort stands for port 0 (any) where a message has to name a port.
const examplePort uint16 = 9480

// CheckListen refuses addresses that others than this machine's users can reach: the page shows
// programs and their processes, and is not encrypted.
func CheckListen(at netip.AddrPort) error {
	if !at.Addr().IsLoopback() {
		port := cmp.Or(at.Port(), examplePort)
		return fmt.Errorf("%w: %v: write 127.0.0.1:%d and forward the port, as by ssh -L %d:127.0.0.1:%d HOST", ErrListen, at, port, port, port)
	}
	return nil
}

// Serve starts to serve the page at an address of the loopback interface.
func Serve(at netip.AddrPort, look AskFunc, await AwaitEndFunc) (*Server, error) {
	if err := CheckListen(at); err != nil {
		return nil, err
	}
	ln, err := listen.At(context.Background(), net.ListenConfig{}, at)
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	s := &Server{at: ln.Addr().(*net.TCPAddr).AddrPort(), token: newToken(), look: look, done: make(chan struct{}), endings: newEndings(await)}
	content, err := fs.Sub(pages, "page")
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(content))
	mux.HandleFunc("GET /api/job", s.serveJobs)
	mux.HandleFunc("GET /api/explain", s.serveExplain)
	mux.HandleFunc("GET /api/ending", s.endings.serve)
	s.http = http.Server{
		Handler: s.guard(mux), ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: time.Minute, MaxHeaderBytes: headerLimit,
		ErrorLog: nil,
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(netutil.LimitListener(ln, connections)) // until Close
	}()
	return s, nil
}

func newToken() string {
	var b [18]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// URL returns the address of the page, with the token that it needs.
func (s *Server) URL() string { return "http://" + s.at.String() + "/?token=" + s.token }

// Address returns the address at which the page is served.
func (s *Server) Address() netip.AddrPort { return s.at }

// Close stops serving, and ends requests.
func (s *Server) Close() {
	s.endings.close()
	_ = s.http.Close()
	<-s.done
}

// Drain waits a short time until all requests that await an end have been answered.
func (s *Server) Drain() { s.endings.drain() }

// cookie returns the name of the cookie with the token. It has the port in it, as browsers send
// cookies to all ports of an address.
func (s *Server) cookie() string { return "impi_ui_" + strconv.Itoa(int(s.at.Port())) }

// guard passes requests that have the token and that ask for this address by a name of this
// machine: pages of other sites, whose name may lead here, are refused.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if !isHere(r.Host) {
			http.Error(w, "this page is at "+s.at.String()+" only", http.StatusMisdirectedRequest)
			return
		}
		if given := r.URL.Query().Get("token"); given != "" && s.knows(given) {
			http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			if r.URL.Path == "/" { // so that the token is neither in the address line nor in the history
				http.Redirect(w, r, "/", http.StatusSeeOther)
				return
			}
		} else if c, err := r.Cookie(s.cookie()); err != nil || !s.knows(c.Value) {
			http.Error(w, "open the address that impi-node ui prints: it has the token that this page needs", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// isHere reports whether a Host header names this machine by itself.
func isHere(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if name == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.IsLoopback()
}

func (s *Server) latest(ctx context.Context) ([]status.Job, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.seen) > fresh {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		s.jobs, s.seen = s.look(ctx), time.Now()
		s.motion.Update(s.jobs, s.seen)
	}
	return s.jobs, s.seen
}

func (s *Server) serveJobs(w http.ResponseWriter, r *http.Request) {
	jobs, at := s.latest(r.Context())
	b, err := json.Marshal(modelOf(jobs, version.String(), at))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}

type explained struct {
	Text  string   `json:"text"`
	Pairs [][2]int `json:"pairs"` // pairs of ranks on the two hosts for which details can be requested
}

const mostPairs = 64

func (s *Server) serveExplain(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a, errA := strconv.Atoi(q.Get("a"))
	b, errB := strconv.Atoi(q.Get("b"))
	if errA != nil || errB != nil {
		http.Error(w, "a and b are ranks, or with by=host the ranks of hosts", http.StatusBadRequest)
		return
	}
	jobs, _ := s.latest(r.Context())
	answer := explained{Pairs: [][2]int{}}
	for i := range jobs {
		if j := &jobs[i].Job; j.ID == q.Get("job") || len(jobs) == 1 {
			answer.of(j, q.Get("by") == "host", a, b)
			break
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func (x *explained) of(j *links.Job, hosts bool, a, b int) {
	var text bytes.Buffer
	switch {
	case hosts:
		pairs := j.ExplainHosts(&text, a, b)
		if x.Pairs = append(x.Pairs, pairs[:min(len(pairs), mostPairs)]...); len(pairs) == 0 {
			text.WriteString("\nNothing is known of single pairs of their procs: none has a link, or the job has too many pairs to tell of each.\n")
		}
	case a == b:
		fmt.Fprintf(&text, "Rank %d itself.\n", a)
	case !j.Explain(&text, a, b):
		fmt.Fprintf(&text, "Nothing is known of ranks %d and %d: nothing was sent between them, or the job has too many pairs to tell of each.\n", a, b)
	}
	x.Text = strings.TrimLeft(text.String(), "\n")
}
