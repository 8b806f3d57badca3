package names

import (
	"context"
	"time"
)

// keep has a goroutine look after the connection. The caller has the turn.
func (s *Session) keep() {
	if !s.keeping {
		s.keeping = true
		s.wg.Go(s.look)
	}
}

// look uses the connection now and then, so that the server knows that the job is
// there. It makes the connection again when it broke and there are names, and closes
// it when nobody needs it.
func (s *Session) look() {
	pause, failed := s.set.Ping, false
	for {
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		select {
		case <-s.turn:
		case <-s.ctx.Done():
			return
		}
		err := s.tend()
		more := s.conn != nil || len(s.mine) > 0
		s.keeping = more
		s.turn <- struct{}{}
		switch {
		case !more:
			return
		case err == nil:
			pause, failed = s.set.Ping, false
		case failed:
			pause = min(2*pause, lastPause)
		default:
			s.set.Logger.Warn("the server for names is lost; the job's names are published again when it is back", "names", len(s.mine), "reason", err)
			pause, failed = s.set.First, true
		}
	}
}

// tend is one look. The caller has the turn.
func (s *Session) tend() error {
	if len(s.mine) == 0 && !s.used {
		s.hangUp()
	}
	s.used = false
	if len(s.mine) == 0 && s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, lastPause)
	defer cancel()
	_, err := s.ask(ctx, Request{Op: OpPing})
	return err
}
