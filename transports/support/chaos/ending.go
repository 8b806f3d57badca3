package chaos

import (
	"context"
	"errors"
	"io"
)

func (t *Transport) forget(d *disturbed) {
	<-d.gone
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.live, d)
}

// ending returns the connections that are closed but still have bytes on their way,
// or all there are.
func (t *Transport) ending(all bool) (some []*disturbed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d := range t.live {
		d.mu.Lock()
		if all || d.closed {
			some = append(some, d)
		}
		d.mu.Unlock()
	}
	return some
}

// Drain waits until what was sent on links that are closed has left, here and in
// the transports inside.
func (t *Transport) Drain(ctx context.Context) error {
	for _, d := range t.ending(false) {
		select {
		case <-d.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var all error
	for _, x := range t.known {
		if x, ok := x.(interface{ Drain(context.Context) error }); ok {
			all = errors.Join(all, x.Drain(ctx))
		}
	}
	return all
}

// Close breaks all links, and closes the transports inside.
func (t *Transport) Close() error {
	for _, d := range t.ending(true) {
		d.Break()
	}
	var all error
	for _, x := range t.known {
		if x, ok := x.(io.Closer); ok {
			all = errors.Join(all, x.Close())
		}
	}
	return all
}

// Stats counts links, for the operator.
func (t *Transport) Stats() map[string]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return map[string]float64{
		"links_disturbed": float64(t.links), "links_open": float64(len(t.live)), "links_cut": float64(t.cuts),
	}
}
