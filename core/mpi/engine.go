package mpi

// The types of this package are those of the engine's packages under other names: the functions
// below convert them, which costs nothing.

import (
	"unsafe"

	"github.com/openimpi/impi/internal/engine/file"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/engine/window"
)

func (c *Comm) in() *proc.Comm             { return (*proc.Comm)(c) }
func (h *Errhandler) in() *proc.Errhandler { return (*proc.Errhandler)(h) }
func (f *File) in() *file.File             { return (*file.File)(f) }
func (g *Group) in() *proc.Group           { return (*proc.Group)(g) }
func (i *Info) in() *proc.Info             { return (*proc.Info)(i) }
func (m *Message) in() *p2p.Message        { return (*p2p.Message)(m) }
func (q *Request) in() *proc.Request       { return (*proc.Request)(q) }
func (r *Roster) in() *proc.MemberTable    { return (*proc.MemberTable)(r) }
func (b *SendBuffer) in() *proc.SendBuffer { return (*proc.SendBuffer)(b) }
func (s *Status) in() *proc.Status         { return (*proc.Status)(s) }
func (w *Win) in() *window.Win             { return (*window.Win)(w) }

// inner returns a slice as one of the engine's type, which has the same layout.
func inner[U, T any](s []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

func outRoster(a *proc.MemberTable, err error) (*Roster, error) { return (*Roster)(a), err }

// commHandler adapts an error handler to the engine's types.
func commHandler(f func(c *Comm, err error)) func(*proc.Comm, error) {
	if f == nil {
		return nil
	}
	return func(c *proc.Comm, err error) { f((*Comm)(c), err) }
}

func winHandler(f func(w *Win, err error)) func(*window.Win, error) {
	if f == nil {
		return nil
	}
	return func(w *window.Win, err error) { f((*Win)(w), err) }
}

// onComm adapts a CopyFunc to the engine's types.
func onComm(f CopyFunc[*Comm]) object.CopyFunc[*proc.Comm] {
	if f == nil {
		return nil
	}
	return func(old *proc.Comm, key Keyval, extra, value any) (any, bool, error) {
		return f((*Comm)(old), key, extra, value)
	}
}

// onCommEnd adapts a DeleteFunc to the engine's types.
func onCommEnd(f DeleteFunc[*Comm]) object.DeleteFunc[*proc.Comm] {
	if f == nil {
		return nil
	}
	return func(c *proc.Comm, key Keyval, value, extra any) error { return f((*Comm)(c), key, value, extra) }
}

func onWin(f CopyFunc[*Win]) object.CopyFunc[*window.Win] {
	if f == nil {
		return nil
	}
	return func(old *window.Win, key Keyval, extra, value any) (any, bool, error) {
		return f((*Win)(old), key, extra, value)
	}
}

func onWinEnd(f DeleteFunc[*Win]) object.DeleteFunc[*window.Win] {
	if f == nil {
		return nil
	}
	return func(w *window.Win, key Keyval, value, extra any) error { return f((*Win)(w), key, value, extra) }
}

func (x Command) in() meet.Command {
	return meet.Command{Path: x.Path, Args: x.Args, Procs: x.Procs, Info: x.Info.in()}
}

func inCommands(list []Command) []meet.Command {
	in := make([]meet.Command, len(list))
	for i := range list {
		in[i] = list[i].in()
	}
	return in
}

func (x Generalized) in() p2p.Generalized {
	g := p2p.Generalized{Free: x.Free, Cancel: x.Cancel}
	if x.Query != nil {
		g.Query = func(st *proc.Status) error { return x.Query((*Status)(st)) }
	}
	return g
}

func outProc(p *proc.Process, err error) (*Proc, error) {
	if err != nil {
		return nil, err
	}
	return &Proc{p}, nil
}

func outFile(f *file.File, err error) (*File, error) { return (*File)(f), err }
