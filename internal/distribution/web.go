package distribution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
)

// Maximum time without data from a server: before its answer, and within it.
const (
	webAnswer = 30 * time.Second
	webStall  = 60 * time.Second
)

const maxRedirects = 5

// web is a mirror on a web server. Certificates are checked by those of the system, or by the files
// that SSL_CERT_FILE and SSL_CERT_DIR name.
type web struct {
	at     *url.URL
	client *http.Client
	stall  time.Duration
}

func newWeb(at string) (source, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = webAnswer
	t.DisableCompression = true // sizes are those of uncompressed files
	return &web{at: u, stall: webStall, client: &http.Client{Transport: t, CheckRedirect: checkRedirect}}, nil
}

// checkRedirect allows https, and plain http only from one port of a loopback address to another
// one.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case to.URL.Scheme == "https":
		return nil
	case to.URL.Scheme == "http" && from.Scheme == "http" && config.LoopbackHost(to.URL.Hostname()) && to.URL.Hostname() == from.Hostname():
		return nil
	}
	return fmt.Errorf("the server sends us on to %s, which is not https", to.URL.Redacted())
}

func (w *web) Close() error {
	w.client.CloseIdleConnections()
	return nil
}

func (w *web) index(ctx context.Context) (*Index, error) {
	in, err := w.open(ctx, IndexName)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	name := w.at.JoinPath(IndexName).String()
	text, err := readAll(in, name, maxIndex)
	if err != nil {
		return nil, err
	}
	x, err := ParseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
}

func (w *web) open(ctx context.Context, file string) (io.ReadCloser, error) {
	at := w.at.JoinPath(strings.Split(file, "/")...).String()
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	a, err := w.client.Do(req)
	if err != nil {
		cancel(nil)
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if a.StatusCode != http.StatusOK {
		a.Body.Close()
		cancel(nil)
		remedy := ""
		if a.StatusCode == http.StatusNotFound && file == IndexName {
			remedy = "; source is the folder that has this file, which impi-node plugins publish makes"
		}
		return nil, fmt.Errorf("%s: the server answers %s%s", at, a.Status, remedy)
	}
	b := &body{in: a.Body, name: at, cancel: cancel, limit: w.stall}
	b.timer = time.AfterFunc(w.stall, func() { cancel(errStall) })
	b.cause = func() error { return context.Cause(ctx) }
	return b, nil
}

var errStall = errors.New("the server has sent nothing for a minute")

// body is the body of an answer, whose reads fail if the server is silent for too long.
type body struct {
	in     io.ReadCloser
	name   string
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
	cause  func() error
	once   sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if n > 0 {
		b.timer.Reset(b.limit)
	}
	cause := b.cause()
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(cause, errStall) { // the stall timeout may look like the end
		return n, err
	}
	if cause != nil {
		err = cause
	}
	return n, fmt.Errorf("%s: %w", b.name, err)
}

func (b *body) Close() error {
	b.once.Do(func() {
		b.timer.Stop()
		b.cancel(nil)
	})
	return b.in.Close()
}
