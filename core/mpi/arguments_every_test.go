package mpi

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// wrong is a value of an argument that MPI calls an error, and the error's class.
type wrong struct {
	value any
	want  Class
}

// callers is what methods of Comm are called on, and with.
type callers struct {
	world, inter, grid, graph *Comm
	freed                     *Comm
	group, gone               *Group
	nothing                   *Info // freed
	uncommitted, dead         *Datatype
	ofTypes, late             Keyval
}

func newCallers(c *Comm) (x *callers, err error) {
	x = &callers{world: c}
	var errs [12]error
	local, err := c.Split(c.Rank(), 0)
	if err != nil {
		return nil, err
	}
	x.inter, errs[0] = local.IntercommCreate(0, c, 1-c.Rank(), 1)
	x.grid, errs[1] = c.CartCreate([]int{2}, []bool{true}, false)
	x.graph, errs[2] = c.GraphCreate([]int{1, 2}, []int{1, 0}, false)
	x.freed, errs[3] = c.Dup()
	x.group, errs[4] = c.Group()
	x.gone, errs[5] = c.Group()
	x.nothing = NewInfo()
	x.uncommitted, errs[6] = datatype.Contiguous(1, datatype.Basic(datatype.Int64))
	x.dead, errs[7] = datatype.Contiguous(1, datatype.Basic(datatype.Int64))
	x.ofTypes, errs[8] = CreateTypeKeyval(nil, nil, nil)
	key, err := CreateKeyval(nil, nil, nil)
	x.late, errs[9] = key, err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return x, errors.Join(x.freed.Free(), x.gone.Free(), x.nothing.Free(), x.dead.Commit(), x.dead.Free(), FreeKeyval(&key))
}

// on is what a method needs.
func (x *callers) on(method string) *Comm {
	switch {
	case method == "CartCreate" || method == "CartMap" || method == "GraphCreate" || method == "GraphMap":
		return x.world
	case strings.Contains(strings.ToLower(method), "neighbora") || strings.HasPrefix(method, "Cart"):
		return x.grid
	case strings.HasPrefix(method, "Graph"):
		return x.graph
	case method == "Merge":
		return x.inter
	case method == "IntercommCreate" || method == "WinAllocateShared":
		return (*Comm)(x.world.in().Process().Comms.Self)
	}
	return x.world
}

// int64s is memory of n items, as a Buffer.
func int64s(n int) Buffer { return Of(make([]int64, n)) }

// itemsOf is how many int64s a Buffer of a method has.
func itemsOf(method, param string) int {
	low := strings.ToLower(method)
	switch {
	case strings.Contains(low, "alltoall"), param == "recv" && strings.Contains(low, "gather"), param == "send" && strings.Contains(low, "scatter"):
		return 2
	}
	return 1
}

// good is an argument that is right.
func (x *callers) good(method, param string, typ reflect.Type) reflect.Value {
	var v any
	me := x.world.Rank()
	switch {
	case typ == reflect.TypeFor[Buffer]():
		v = int64s(itemsOf(method, param))
	case typ == reflect.TypeFor[[]Buffer]():
		v = []Buffer{int64s(1), int64s(1)}
	case typ == reflect.TypeFor[Op]():
		v = Sum
	case typ == reflect.TypeFor[*Group]():
		v = x.group
	case typ == reflect.TypeFor[*Comm]():
		v = x.world
	case typ == reflect.TypeFor[*Errhandler]():
		v = ErrorsReturn
	case typ == reflect.TypeFor[*Datatype]():
		v = datatype.Basic(datatype.Int64)
	case typ == reflect.TypeFor[error]():
		v = ErrArg
	default:
		v = map[string]any{
			"dst": 1 - me, "src": 1 - me, "root": me, "counts": []int{1, 1}, "scounts": []int{1, 1}, "rcounts": []int{1, 1},
			"displs": []int{0, 1}, "sdispls": []int{0, 1}, "rdispls": []int{0, 1}, "unit": 8, "parts": 1, "kind": CommTypeShared,
			"dims": []int{2}, "periodic": []bool{false}, "keep": []bool{true}, "coords": []int{0}, "index": []int{1, 2}, "edges": []int{1, 0},
			"remoteLeader": 1 - me, "out": make([]byte, 8), "in": make([]byte, 8),
		}[param]
	}
	if v == nil {
		return reflect.Zero(typ)
	}
	return reflect.ValueOf(v)
}

// wrongBuffers of n int64s.
func (x *callers) wrongBuffers(n int) []wrong {
	mem, i64 := make([]int64, n), datatype.Basic(datatype.Int64)
	return []wrong{
		{Typed(mem, -1, i64), mpierr.Count}, {Typed(mem, n, nil), mpierr.Type}, {Typed(mem, n, x.uncommitted), mpierr.Type},
		{Typed(mem, n, x.dead), mpierr.Type}, {At(nil, n, i64), mpierr.Buffer}, {Typed(mem[1:], n, i64), mpierr.Buffer},
	}
}

// anything is of parameters of which nothing is wrong.
var anything = []wrong{}

// wrongs are the values that a parameter must not have; nil: nobody has said.
func (x *callers) wrongs(method, param string, typ reflect.Type) []wrong {
	if list, ok := x.special()[method+"."+param]; ok {
		return list
	}
	switch typ {
	case reflect.TypeFor[Command]():
		return []wrong{{Command{Procs: 1}, mpierr.Arg}, {Command{Path: "a"}, mpierr.Arg}, {Command{Path: "a", Procs: 1, Info: x.nothing}, mpierr.Info}}
	case reflect.TypeFor[[]Command]():
		return []wrong{{[]Command{}, mpierr.Arg}, {[]Command{{Path: "a", Procs: -1}}, mpierr.Arg}, {[]Command{{Path: "a", Procs: 1, Info: x.nothing}}, mpierr.Info}}
	case reflect.TypeFor[Buffer]():
		return x.wrongBuffers(itemsOf(method, param))
	case reflect.TypeFor[[]Buffer]():
		list := []wrong{{[]Buffer{int64s(1)}, mpierr.Count}}
		for _, w := range x.wrongBuffers(1) {
			list = append(list, wrong{[]Buffer{int64s(1), w.value.(Buffer)}, w.want})
		}
		return list
	case reflect.TypeFor[Op]():
		return []wrong{{nil, mpierr.Op}, {MinLoc, mpierr.Op}}
	case reflect.TypeFor[*Group]():
		return []wrong{{(*Group)(nil), mpierr.Group}, {x.gone, mpierr.Group}}
	case reflect.TypeFor[*Comm]():
		return []wrong{{(*Comm)(nil), mpierr.Comm}, {x.freed, mpierr.Comm}}
	case reflect.TypeFor[*Errhandler]():
		return []wrong{{(*Errhandler)(nil), mpierr.Errhandler}}
	case reflect.TypeFor[*Info]():
		return []wrong{{x.nothing, mpierr.Info}}
	case reflect.TypeFor[*Datatype]():
		return []wrong{{(*Datatype)(nil), mpierr.Type}, {x.dead, mpierr.Type}}
	case reflect.TypeFor[Keyval]():
		return []wrong{{KeyvalInvalid, mpierr.Keyval}, {x.ofTypes, mpierr.Keyval}, {x.late, mpierr.Keyval}}
	case reflect.TypeFor[bool](), reflect.TypeFor[any](), reflect.TypeFor[string](), reflect.TypeFor[error]():
		return anything
	}
	return x.named()[param]
}

// named is by the names that parameters have throughout.
func (x *callers) named() map[string][]wrong {
	ranks := []wrong{{2, mpierr.Rank}, {-9, mpierr.Rank}}
	counts := []wrong{{[]int{1}, mpierr.Count}, {[]int{-1, 1}, mpierr.Count}}
	displs := []wrong{{[]int{0}, mpierr.Count}}
	receives := []wrong{{-5, mpierr.Tag}, {40_001, mpierr.Tag}}
	weights := []wrong{{[]int{-1}, mpierr.Arg}}
	return map[string][]wrong{
		"dst": append([]wrong{{AnySource, mpierr.Rank}}, ranks...), "src": ranks, "rank": ranks,
		"tag": append([]wrong{{AnyTag, mpierr.Tag}}, receives...), "stag": append([]wrong{{AnyTag, mpierr.Tag}}, receives...), "rtag": receives,
		"root":   {{2, mpierr.Root}, {-1, mpierr.Root}, {-4, mpierr.Root}, {ProcNull, mpierr.Root}},
		"counts": counts, "scounts": counts, "rcounts": counts, "displs": displs, "sdispls": displs, "rdispls": displs,
		"color": {{-5, mpierr.Arg}, {1 << 40, mpierr.Arg}}, "key": {{1 << 40, mpierr.Arg}}, "kind": {{7, mpierr.Arg}},
		"dims": {{[]int{3}, mpierr.Dims}, {[]int{-1}, mpierr.Dims}, {[]int{0}, mpierr.Dims}}, "dim": {{1, mpierr.Dims}, {-1, mpierr.Dims}},
		"periodic": {{[]bool{}, mpierr.Dims}}, "keep": {{[]bool{true, true}, mpierr.Dims}}, "disp": anything, "coords": {{[]int{0, 0}, mpierr.Dims}},
		"index": {{[]int{2, 1}, mpierr.Arg}, {[]int{0, 0, 0}, mpierr.Arg}}, "edges": {{[]int{2, 0}, mpierr.Arg}, {[]int{1}, mpierr.Arg}},
		"localLeader": ranks, "remoteLeader": ranks,
		"sources": {{[]int{2}, mpierr.Rank}}, "dests": {{[]int{2}, mpierr.Rank}}, "degrees": {{[]int{-1}, mpierr.Arg}},
		"weights": weights, "sourceWeights": weights, "destWeights": weights,
		"size": {{int64(-1), mpierr.Size}}, "unit": {{0, mpierr.Disp}, {-8, mpierr.Disp}}, "count": {{-1, mpierr.Count}}, "parts": {{-1, mpierr.Arg}},
		"position": {{int64(-1), mpierr.Arg}, {int64(9), mpierr.Truncate}}, "out": {{make([]byte, 7), mpierr.Truncate}}, "in": {{make([]byte, 7), mpierr.Truncate}},
	}
}

// special is what differs from that, by method and parameter.
func (x *callers) special() map[string][]wrong {
	receives := []wrong{{-5, mpierr.Tag}, {40_001, mpierr.Tag}} // of any tag
	mem, i64 := make([]int64, 1), datatype.Basic(datatype.Int64)
	return map[string][]wrong{
		"Recv.tag": receives, "Irecv.tag": receives, "RecvInit.tag": receives,
		"DistGraphCreate.sources": {{[]int{2}, mpierr.Arg}}, // without as many degrees
		"DistGraphCreate.dests":   {{[]int{2}, mpierr.Arg}},
		"Agree.flag":              anything,
		"Iagree.flag":             {{(*int32)(nil), mpierr.Arg}},
		"AckFailed.most":          {{-1, mpierr.Arg}},
		"Accept.info":             anything, // nobody is to be met here: TestConnectFails
		"Connect.info":            anything,
		"IdupWithInfo.info":       anything, // its request tells: TestHints
		"WinCreate.base": {
			{Typed(mem, -1, i64), mpierr.Size}, {Typed(mem, 2, i64), mpierr.Size}, {At(nil, 1, i64), mpierr.Base},
			{Typed(mem, 1, nil), mpierr.Base}, {Typed(mem, 1, x.uncommitted), mpierr.Base}, {InPlace, mpierr.Base},
		},
	}
}

// sources parses the package's files: its tests, or the others.
func sources(t *testing.T, tests bool) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// parameters returns the names of the parameters of this package's exported
// functions and methods that can fail, by Function or Type.Method.
func parameters(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, file := range sources(t, false) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Type.Results == nil {
				continue
			}
			if out := f.Type.Results.List; types.ExprString(out[len(out)-1].Type) != "error" {
				continue
			}
			name, names := f.Name.Name, []string{}
			if f.Recv != nil {
				name = strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + name
			}
			for _, p := range f.Type.Params.List {
				for _, n := range p.Names {
					names = append(names, n.Name)
				}
			}
			all[name] = names
		}
	}
	return all
}

// Every method of Comm is called with each of its arguments wrong in each way, the
// others being right: the handler and the caller get the class that MPI says, before
// anything is sent, and the communicator works. A parameter whose wrong values nobody
// has said fails.
func TestEveryArgumentOfComm(t *testing.T) {
	names := parameters(t)
	for clients := 1; clients <= 2; clients++ {
		l := layout{procs: 2, tagUB: 40_000, data: sameOrder, client: func(rank int) int { return rank % clients }}
		procs := l.start(t)
		program(t, procs[0]) // what has no communicator asks whether Init was called
		l.finish(t, procs, func(t *testing.T, c *Comm) error {
			x, err := newCallers(c)
			if err != nil {
				return err
			}
			heard := newListener(t)
			for _, d := range []*Comm{c, (*Comm)(c.in().Process().Comms.Self), x.inter, x.grid, x.graph} {
				heard.on(t, d)
			}
			typ := reflect.TypeFor[*Comm]()
			for i := range typ.NumMethod() {
				m := typ.Method(i)
				if params, ok := names["Comm."+m.Name]; ok && m.Name != "FileOpen" { // no handler hears of files: TestFileErrors
					err = errors.Join(err, x.everyArgument(m, params, heard))
				}
			}
			return err
		})
	}
}

func (x *callers) everyArgument(m reflect.Method, params []string, heard *listener) (err error) {
	for i, param := range params {
		typ := m.Type.In(i + 1)
		list := x.wrongs(m.Name, param, typ)
		if list == nil {
			err = errors.Join(err, fmt.Errorf("%s: which values of %s, %v, are wrong?", m.Name, param, typ))
		}
		for _, w := range list {
			row := bad{want: w.want, call: func(*badThings) error { return x.call(m, params, i, w.value) }}
			if e := row.check(&badThings{c: x.world}, heard); e != nil {
				err = errors.Join(err, fmt.Errorf("%s with %s %v: %w", m.Name, param, w.value, e))
			}
		}
	}
	return err
}

// call calls a method with one argument that is wrong.
func (x *callers) call(m reflect.Method, params []string, at int, value any) error {
	args := []reflect.Value{reflect.ValueOf(x.on(m.Name))}
	for i, param := range params {
		args = append(args, x.good(m.Name, param, m.Type.In(i+1)))
	}
	if args[at+1] = reflect.Zero(m.Type.In(at + 1)); value != nil {
		args[at+1] = reflect.ValueOf(value)
	}
	out := m.Func.Call(args)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}
