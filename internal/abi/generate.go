package abi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Paths of the inputs and the generated files, from the root of the repository.
const (
	headerFile = "include/mpi.h"
	formsFile  = "include/mpi_generated.h"
	library    = "cmd/libmpi"
	stubsFile  = library + "/stubs.c"
	tableFile  = "internal/abi/functions.go"
	fastFile   = library + "/fastpath_calls.h"
)

// fast has the functions that C does by itself if it can, and how: see fastpath.c, fastboard.c,
// faststart.c and fastwindow.c.
var fast = map[string]string{
	"MPI_Send":    "send_fastbox(buf, count, datatype, dest, tag, comm)",
	"MPI_Recv":    "recv_fastbox(buf, count, datatype, source, tag, comm, status)",
	"MPI_Isend":   "isend_fastbox(buf, count, datatype, dest, tag, comm, request)",
	"MPI_Irecv":   "irecv_fastbox(buf, count, datatype, source, tag, comm, request)",
	"MPI_Wait":    "wait_fastbox(request, status)",
	"MPI_Test":    "test_fastbox(request, flag, status)",
	"MPI_Waitall": "waitall_fastboxes(count, array_of_requests, array_of_statuses)",

	"MPI_Barrier":              "impi_barrier(comm)",
	"MPI_Bcast":                "impi_bcast(buffer, count, datatype, root, comm)",
	"MPI_Gather":               "impi_gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)",
	"MPI_Scatter":              "impi_scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)",
	"MPI_Allgather":            "impi_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)",
	"MPI_Alltoall":             "impi_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)",
	"MPI_Reduce":               "impi_reduce(sendbuf, recvbuf, count, datatype, op, root, comm)",
	"MPI_Allreduce":            "impi_allreduce(sendbuf, recvbuf, count, datatype, op, comm)",
	"MPI_Reduce_scatter_block": "impi_reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm)",

	"MPI_Ibarrier":   "impi_ibarrier(comm, request)",
	"MPI_Ibcast":     "impi_ibcast(buffer, count, datatype, root, comm, request)",
	"MPI_Igather":    "impi_igather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request)",
	"MPI_Iscatter":   "impi_iscatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request)",
	"MPI_Iallgather": "impi_iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)",
	"MPI_Ialltoall":  "impi_ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)",
	"MPI_Ireduce":    "impi_ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request)",
	"MPI_Iallreduce": "impi_iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request)",

	"MPI_Put":                 "impi_put(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win)",
	"MPI_Get":                 "impi_get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win)",
	"MPI_Accumulate":          "impi_accumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win)",
	"MPI_Get_accumulate":      "impi_get_accumulate(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win)",
	"MPI_Fetch_and_op":        "impi_get_accumulate(origin_addr, 1, datatype, result_addr, 1, datatype, target_rank, target_disp, 1, datatype, op, win)",
	"MPI_Compare_and_swap":    "impi_compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win)",
	"MPI_Win_flush":           "impi_flush(rank, win)",
	"MPI_Win_flush_local":     "impi_flush(rank, win)",
	"MPI_Win_flush_all":       "impi_flush_all(win)",
	"MPI_Win_flush_local_all": "impi_flush_all(win)",
	"MPI_Win_fence":           "impi_fence(assert, win)",
	"MPI_Win_sync":            "impi_sync(win)",
}

// kinds are the names of what has handles, in the order of internal/abi/handles.
var kinds = []string{"", "Comm", "Group", "Type", "Op", "Request", "Info", "Errhandler", "Win", "File", "Session", "Message"}

// Generate returns the text of all generated files, by their names.
func Generate(root fs.FS) (map[string]string, error) {
	text, err := fs.ReadFile(root, headerFile)
	if err != nil {
		return nil, err
	}
	fns, err := AllFunctions(string(text))
	if err != nil {
		return nil, err
	}
	g := &generator{}
	if err := g.scan(root); err != nil {
		return nil, err
	}
	collectives, err := Collectives(fns)
	if err != nil {
		return nil, err
	}
	exports, err := Calls(fns)
	if err != nil {
		return nil, err
	}
	face, err := TransfersFace(fns)
	if err != nil {
		return nil, err
	}
	names, err := timedNames(fns)
	if err != nil {
		return nil, err
	}
	classes, err := Classes(string(text))
	if err != nil {
		return nil, err
	}
	written := map[string]string{callsFile: exports, collectivesFile: collectives, transfersFile: Transfers(fns), transfersFace: face}
	for name, text := range written {
		if err := g.scanGo(name, []byte(text)); err != nil {
			return nil, err
		}
	}
	g.timed = timedCalls(fns)
	g.pairs(Pairs(fns))
	for name, where := range g.exports {
		if !g.used[name] {
			return nil, fmt.Errorf("%s: %s is for no function of mpi.h", where.file, name)
		}
	}
	if len(g.problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(g.problems, "\n"))
	}
	written[stubsFile], written[tableFile], written[fastFile] = g.stubs.String(), g.table(fns), g.fast.String()
	written[formsFile], written[classesFile] = derived(fns), classes
	written[timedFile] = names
	return written, nil
}

type generator struct {
	exports  map[string]export // Go functions, by name
	direct   map[string]bool   // functions of MPI written in C
	used     map[string]bool
	done     map[string]bool // functions of MPI that are implemented
	index    int
	timed    []string // the functions that are measured, by their numbers
	stubs    strings.Builder
	fast     strings.Builder
	problems []string
}

type export struct {
	file   string
	params []string // types
}

var definition = pattern(`(?m)^[a-zA-Z].*\bP(MPI_\w+)\(`)

func (g *generator) scan(root fs.FS) error {
	g.exports, g.direct = map[string]export{}, map[string]bool{}
	g.used, g.done = map[string]bool{}, map[string]bool{}
	entries, err := fs.ReadDir(root, library)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(library, e.Name())
		text, err := fs.ReadFile(root, name)
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(name, ".c") && name != stubsFile:
			for _, m := range definition().FindAllStringSubmatch(string(text), -1) {
				g.direct[m[1]] = true
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !slices.Contains([]string{callsFile, collectivesFile, transfersFile}, name):
			if err := g.scanGo(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *generator) scanGo(name string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || !strings.HasPrefix(fn.Name.Name, "abi") {
			continue
		}
		if !slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == "//export "+fn.Name.Name }) {
			continue
		}
		x := export{file: name}
		for _, field := range fn.Type.Params.List {
			id, _ := field.Type.(*ast.Ident)
			if id == nil {
				return fmt.Errorf("%s: %s: a parameter that C cannot give", name, fn.Name.Name)
			}
			for range max(1, len(field.Names)) {
				x.params = append(x.params, id.Name)
			}
		}
		g.exports[fn.Name.Name] = x
	}
	return nil
}

const unsupported = "abiUnsupported"

func (g *generator) pairs(pairs []Pair) {
	g.used[unsupported] = true
	g.stubs.WriteString("// Code generated by internal/abi/gen. DO NOT EDIT.\n\n" +
		"#include <mpi.h>\n#include \"_cgo_export.h\"\n#include \"measure.h\"\n\n#define W(x) ((GoUintptr)(x))\n\n" +
		"// Handles as ints: constants are their values, the lower half of others tells apart those of a\n" +
		"// kind that exist at a time.\n" +
		"static void *fromint(int kind, int n) { return n >= 0 && n < 4096 ? (void *)W(n) : (void *)handleFromInt(kind, n); }\n")
	fmt.Fprintf(&g.fast, "// Code generated by internal/abi/gen. DO NOT EDIT.\n\nenum { SENDRECV = %d };\n", slices.Index(g.timed, "MPI_Sendrecv"))
	for _, p := range pairs {
		g.stub(p, p.Small, "0")
		if p.Large != nil {
			g.stub(p, *p.Large, "1")
		}
	}
}

// stub writes one function, and its weak other name.
func (g *generator) stub(p Pair, f Function, which string) {
	index := g.index
	g.index++
	entry := Entry(p.Small.Name)
	if g.direct[f.Name] {
		g.done[f.Name] = true
		if x, ok := g.exports[entry]; ok { // C calls it where C does not do everything itself
			g.used[entry] = true
			g.compare(entry, x, p)
		}
		return
	}
	call, to, does := g.call(p, f, which), &g.stubs, ""
	kind, conversion, _ := strings.Cut(strings.TrimPrefix(f.Name, "MPI_"), "_")
	x, ok := g.exports[entry]
	switch {
	case conversion == "toint":
		call = "(int)(unsigned)" + "W(" + f.Args[0].Name + ")"
	case conversion == "fromint":
		call = fmt.Sprintf("fromint(%d, %s)", slices.Index(kinds, kind), f.Args[0].Name)
	case !ok:
		call = refuse(f, index)
	case fast[p.Small.Name] != "":
		to, does = &g.fast, fast[p.Small.Name]+" ? MPI_SUCCESS : "
	}
	if ok {
		g.used[entry] = true
		g.compare(entry, x, p)
	}
	g.done[f.Name] = ok || slices.Contains([]string{"toint", "fromint"}, conversion)
	number := slices.Index(g.timed, p.Small.Name)
	if !ok || p.Small.Name == "MPI_Finalize" { // it counts itself before its message to the node
		number = -1
	}
	to.WriteString(timedStub(f, number, does, call))
	fmt.Fprintf(to, "%s %s(%s) __attribute__((weak, alias(\"P%s\")));\n", f.Result, f.Name, f.Params, f.Name)
}

func (g *generator) call(p Pair, f Function, which string) string {
	var args []string
	shapes, told := p.Shapes()
	for i, a := range f.Args {
		if shapes[i] == Word {
			args = append(args, "W("+a.Name+")")
		} else {
			args = append(args, a.Name)
		}
	}
	if told {
		args = append(args, which)
	}
	return Entry(p.Small.Name) + "(" + strings.Join(args, ", ") + ")"
}

func refuse(f Function, index int) string {
	if strings.HasPrefix(f.Name, "MPI_T_") {
		return "MPI_T_ERR_NOT_SUPPORTED" // the tool interface has no error handlers
	}
	for _, a := range f.Args {
		if sort, ok := a.Handle(); ok {
			return fmt.Sprintf("%s(%d, %d, W(%s))", unsupported, index, slices.Index(sorts, sort), a.Name)
		}
	}
	return fmt.Sprintf("%s(%d, 0, 0)", unsupported, index)
}

// sorts are the objects with error handlers, as abiUnsupported is told of them.
var sorts = []string{"", "Comm", "Win", "File", "Session"}

var goTypes = map[Shape]string{Word: "uintptr", Int: "int32", Count: "int64", Float: "float64"}

func (g *generator) compare(entry string, x export, p Pair) {
	shapes, told := p.Shapes()
	var want []string
	for _, s := range shapes {
		want = append(want, goTypes[s])
	}
	if told {
		want = append(want, "int32")
	}
	if !slices.Equal(want, x.params) {
		g.problems = append(g.problems, fmt.Sprintf("%s: %s has parameters (%s), want (%s)",
			x.file, entry, strings.Join(x.params, ", "), strings.Join(want, ", ")))
	}
}

// table writes the table of functions, in the order of their numbers.
func (g *generator) table(fns []Function) string {
	var b strings.Builder
	b.WriteString("// Code generated by internal/abi/gen. DO NOT EDIT.\n\npackage abi\n\nvar functions = [...]Support{\n")
	for _, p := range Pairs(fns) {
		fmt.Fprintf(&b, "\t{%q, %v},\n", p.Small.Name, g.done[p.Small.Name])
		if p.Large != nil {
			fmt.Fprintf(&b, "\t{%q, %v},\n", p.Large.Name, g.done[p.Large.Name])
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// derived declares the functions that mpi.h does not, and all by their names for profiling,
// PMPI_Send for MPI_Send.
func derived(fns []Function) string {
	var b strings.Builder
	b.WriteString("/* Code generated by internal/abi/gen. DO NOT EDIT. It is a part of mpi.h. */\n\n")
	for _, f := range fns {
		if f.Derived {
			fmt.Fprintf(&b, "%s %s(%s);\n", f.Result, f.Name, f.Params)
		}
	}
	b.WriteString("\n")
	for _, f := range fns {
		fmt.Fprintf(&b, "%s P%s(%s);\n", f.Result, f.Name, f.Params)
	}
	return b.String()
}
