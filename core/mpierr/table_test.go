package mpierr

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// TestTableIsComplete looks for exported sentinels in the source of core and of links.
// core/mpi has a table of its own: it imports this one.
func TestTableIsComplete(t *testing.T) {
	have := rowsOf(t, "table.go")
	dirs, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	packages := []string{filepath.Join("..", "..", "plugins", "sdk", "link")}
	for _, d := range dirs {
		if !d.IsDir() || d.Name() == "mpi" || d.Name() == "mpierr" {
			continue
		}
		packages = append(packages, filepath.Join("..", d.Name()))
	}
	found := 0
	for _, dir := range packages {
		name := filepath.Base(dir)
		for _, sentinel := range sentinels(t, dir) {
			found++
			if !have[name+"."+sentinel] {
				t.Errorf("%s.%s has no class", name, sentinel)
			}
		}
	}
	if found != len(table) || len(have) != len(table) {
		t.Errorf("%d sentinels, %d rows, %d different ones", found, len(table), len(have))
	}
}

// sentinels lists the exported package variables Err… of a folder.
func sentinels(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, spec := range g.Specs {
					for _, id := range spec.(*ast.ValueSpec).Names {
						if strings.HasPrefix(id.Name, "Err") {
							names = append(names, id.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// rowsOf lists the pkg.ErrX that a file mentions.
func rowsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	have := make(map[string]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "Err") {
			have[sel.X.(*ast.Ident).Name+"."+sel.Sel.Name] = true
		}
		return true
	})
	return have
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Class
	}{
		{nil, Success}, {io.EOF, Other}, {message.ErrTruncate, Truncate},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", comm.ErrRank)), Rank},
		{fmt.Errorf("coll: %w", datatype.ErrOp), Op}, {coll.ErrRoot, Root},
		{fmt.Errorf("%w: %w", link.ErrBroken, message.ErrPeerDown), ProcAborted},
		{fmt.Errorf("%w: %w", message.ErrPeerDown, message.ErrTruncate), Truncate},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

func TestClasses(t *testing.T) {
	// A few numbers of the ABI, from its start, middle and end.
	for c, want := range map[Class]string{
		0: "MPI_SUCCESS", 1: "MPI_ERR_BUFFER", 10: "MPI_ERR_OP", 16: "MPI_ERR_OTHER", 19: "MPI_ERR_IN_STATUS", 32: "MPI_ERR_INFO_NOKEY",
		43: "MPI_ERR_PORT", 54: "MPI_ERR_UNSUPPORTED_DATAREP", 58: "MPI_ERR_PROC_ABORTED", 62: "MPI_ERR_ABI", 63: "MPI error class 63",
	} {
		if c.String() != want || c.Valid() != (c < 63) {
			t.Errorf("class %d is %v", int(c), c)
		}
	}
	seen := make(map[string]bool)
	for c := Success; c.Valid(); c++ {
		if c.Text() == "" || seen[c.Text()] || seen[c.String()] {
			t.Errorf("%v has no text of its own", c)
		}
		seen[c.Text()], seen[c.String()] = true, true
	}
	if Class(-1).Valid() || Class(-1).Text() == "" {
		t.Error("a class that does not exist")
	}
}
