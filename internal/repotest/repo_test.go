package repotest

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Module is the import path of the repository's root.
const Module = "github.com/openimpi/impi"

// Repo is a repository: its text files, with the Go ones parsed. Nested modules
// but the SDK, and testdata, have their text only.
type Repo struct {
	Top   []string // folders at the top that are part of the repository
	Go    []*GoFile
	Texts []Text
	Fset  *token.FileSet
}

// GoFile is one Go file of the repository's own module, or of the SDK's.
type GoFile struct {
	Path      string // from the root, with slashes
	Dir       string // the same for its package
	Test      bool   // *_test.go
	Generated bool
	Lines     int
	AST       *ast.File
}

// Text is any file without NUL bytes.
type Text struct {
	Path string
	Data []byte
}

// Problem is one place where a rule is broken.
type Problem struct {
	Path string
	Line int // 0 if it is the whole file or folder
	Text string
}

// String is path:line: text.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
}

// Rule is one thing that holds everywhere in the repository.
type Rule struct {
	Name  string
	Check func(*Repo) []Problem
}

// Rules are all of them.
func Rules() []Rule {
	return []Rule{
		{"top-level-folders", TopLevel},
		{"imports", Imports},
		{"pure-core", PureCore},
		{"transport-names", TransportNames},
		{"words", Words},
		{"package-comments", PackageComments},
		{"exported-comments", ExportedComments},
		{"citations", Citations},
		{"sizes", Sizes},
		{"copies", Copies},
		{"rooms", Rooms},
		{"face", Face},
		{"test-habits", HabitsOfTests},
		{"contract-skips", ContractSkips},
		{"error-classes", ErrorClasses},
		{"machine-paths", MachinePaths},
		{"semantics", Semantics},
		{"doc-links", DocLinks},
		{"doc-width", DocWidth},
		{"map", Map},
	}
}

// Read parses the repository in root. Files that git ignores by the top-level
// names in .gitignore are left out.
func Read(root fs.FS) (*Repo, error) {
	r := &Repo{Fset: token.NewFileSet()}
	skip := ignored(root)
	nested := map[string]bool{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case skip[name] || d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if !strings.Contains(name, "/") && !strings.HasPrefix(name, ".") {
				r.Top = append(r.Top, name)
			}
			_, own := fs.Stat(root, name+"/go.mod")
			nested[name] = own == nil && name != sdk || nested[path.Dir(name)] || d.Name() == "testdata"
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return r.add(name, data, nested[path.Dir(name)])
	})
	return r, err
}

// ignored are the names that .gitignore anchors to the root.
func ignored(root fs.FS) map[string]bool {
	names := map[string]bool{}
	data, _ := fs.ReadFile(root, ".gitignore")
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
			names[strings.Trim(line, "/")] = true
		}
	}
	return names
}

func (r *Repo) add(name string, data []byte, foreign bool) error {
	if bytes.IndexByte(data, 0) < 0 {
		r.Texts = append(r.Texts, Text{name, data})
	}
	if foreign || path.Ext(name) != ".go" {
		return nil
	}
	file, err := parser.ParseFile(r.Fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	r.Go = append(r.Go, &GoFile{
		Path: name, Dir: path.Dir(name), AST: file,
		Test:      strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(file),
		Lines:     bytes.Count(data, []byte("\n")),
	})
	return nil
}

// line is the line of a position.
func (r *Repo) line(pos token.Pos) int { return r.Fset.Position(pos).Line }

// packages groups the files that are neither tests nor generated, by folder.
func (r *Repo) packages() map[string][]*GoFile {
	packages := map[string][]*GoFile{}
	for _, f := range r.Go {
		if !f.Test && !f.Generated {
			packages[f.Dir] = append(packages[f.Dir], f)
		}
	}
	return packages
}

// Sorted puts problems in the order of paths and lines.
func Sorted(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return problems
}
