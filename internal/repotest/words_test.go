package repotest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// glossary is where words are settled.
const glossary = "docs/glossary.md"

var coded = regexp.MustCompile("`([a-z]+)`")

// publishedWords are names with such a word that programs already use.
var publishedWords = []string{"Guests"}

// Words wants names without the words that the glossary rules out: between backquotes in the column
// "Not" of its tables, and under "Words of no name". It looks at all names that are declared,
// exported or not, but not in tests.
func Words(r *Repo) []Problem {
	out := r.wordsOfNoName()
	if len(out) == 0 {
		return []Problem{{glossary, 1, `it has no list "Words of no name"`}}
	}
	var problems []Problem
	for _, f := range r.Go {
		if f.Test || f.Generated {
			continue
		}
		for _, id := range declaredNames(f.AST) {
			if slices.Contains(publishedWords, id.Name) {
				continue
			}
			for _, w := range camel(id.Name) {
				if slices.Contains(out, w) || slices.Contains(out, strings.TrimSuffix(w, "s")) {
					problems = append(problems, Problem{f.Path, r.line(id.Pos()), id.Name + " has the word " + w + ", which " + glossary + " rules out"})
				}
			}
		}
	}
	return problems
}

// wordsOfNoName are those of the glossary.
func (r *Repo) wordsOfNoName() (words []string) {
	i := slices.IndexFunc(r.Texts, func(t Text) bool { return t.Path == glossary })
	if i < 0 {
		return nil
	}
	tables, list, _ := strings.Cut(string(r.Texts[i].Data), "## Words of no name\n")
	list, _, _ = strings.Cut(list, "\n## ")
	for line := range strings.Lines(tables) {
		if columns := strings.Split(line, "|"); len(columns) == 5 {
			list += columns[3]
		}
	}
	for _, m := range coded.FindAllStringSubmatch(list, -1) {
		words = append(words, m[1])
	}
	return words
}

// declaredNames are the names that a file declares: the package's, of its own level, of fields and
// methods, and those inside functions.
func declaredNames(f *ast.File) []*ast.Ident {
	names := []*ast.Ident{f.Name}
	define := func(tok token.Token, list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok && tok == token.DEFINE {
				names = append(names, id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			names = append(names, x.Name)
		case *ast.TypeSpec:
			names = append(names, x.Name)
		case *ast.ValueSpec:
			names = append(names, x.Names...)
		case *ast.Field:
			names = append(names, x.Names...)
		case *ast.AssignStmt:
			define(x.Tok, x.Lhs...)
		case *ast.RangeStmt:
			define(x.Tok, x.Key, x.Value)
		}
		return true
	})
	return names
}

// camel returns the words of a name in lower case: http and hall of HTTPHall.
func camel(name string) (words []string) {
	begin, upper := 0, func(i int) bool { return i < len(name) && unicode.IsUpper(rune(name[i])) }
	for i := 1; i < len(name); i++ {
		if upper(i) && (!upper(i-1) || i+1 < len(name) && !upper(i+1)) {
			words, begin = append(words, strings.ToLower(name[begin:i])), i
		}
	}
	return append(words, strings.ToLower(name[begin:]))
}
