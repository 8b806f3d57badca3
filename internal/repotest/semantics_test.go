package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// semantics is the document whose tables say which test proves which rule of MPI.
const semantics = "docs/semantics.md"

// proof is the name of a test in a table: folder.TestName, and a subtest or row.
var proof = regexp.MustCompile("`([a-z0-9/-]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/([^`]+))?`")

// Semantics holds docs/semantics.md to the tests: each row of a table names one at
// least in its last column, each test that is named is there, and what is named of
// it after a slash is a string in a test file of its folder.
func Semantics(r *Repo) (problems []Problem) {
	funcs, words := r.tests()
	for _, text := range r.Texts {
		if text.Path != semantics {
			continue
		}
		for i, line := range strings.Split(string(text.Data), "\n") {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule ") {
				continue
			}
			bad := func(format string, args ...any) {
				problems = append(problems, Problem{semantics, i + 1, fmt.Sprintf(format, args...)})
			}
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			proofs := proof.FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(cells) != 3 || len(proofs) == 0 {
				bad("a row has a rule, what it means and its tests, as `core/mpi.TestFree`")
			}
			for _, p := range proofs {
				switch dir, name, part := p[1], p[2], p[3]; {
				case !funcs[dir+"."+name]:
					bad("there is no test %s in %s", name, dir)
				case part != "" && !words[dir+"."+part]:
					bad("no test file in %s has the string %q", dir, part)
				}
			}
		}
	}
	return problems
}

// tests returns the test functions, as folder.TestName, and the strings in test files,
// as folder.string.
func (r *Repo) tests() (funcs, words map[string]bool) {
	funcs, words = map[string]bool{}, map[string]bool{}
	for _, f := range r.Go {
		if !f.Test {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					funcs[f.Dir+"."+n.Name.Name] = true
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					if s, err := strconv.Unquote(n.Value); err == nil {
						words[f.Dir+"."+s] = true
					}
				}
			}
			return true
		})
	}
	return funcs, words
}
