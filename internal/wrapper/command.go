package wrapper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Reasons not to call a compiler.
var (
	errNoCompiler = errors.New("no compiler was found")
	errNoHeader   = errors.New("the header was not found")
	errNoLibrary  = errors.New("the library was not found")
)

// library is what every program is linked with.
const library = "libmpi_abi.so"

type command struct {
	compiler   []string // command of the compiler and its own arguments
	includeDir string
	module     []string // flags for the folder of Fortran's module
	libDir     string
	linked     []string
	rpath      bool
	args       []string // arguments of the wrapper's caller
}

func newCommand(lang Language, asked request, self string, getenv func(string) string) (*command, error) {
	compiler, err := findCompiler(lang, asked.compiler, self, getenv)
	if err != nil {
		return nil, err
	}
	c := &command{compiler: compiler, args: asked.args, rpath: !asked.noPath, linked: lang.Linked}
	bin := filepath.Dir(self)
	if c.includeDir = beside(bin, lang.Header, "include"); c.includeDir == "" {
		return nil, fmt.Errorf("%w: there is no %s in %s; %s is to stay in the folder it was installed in",
			errNoHeader, lang.Header, filepath.Join(filepath.Dir(bin), "include"), lang.Name)
	}
	if c.libDir = beside(bin, library, "lib", "lib64"); c.libDir == "" && (asked.show != "" || links(c.args)) {
		return nil, fmt.Errorf("%w: there is no %s in %s; make build makes it", errNoLibrary, library, filepath.Join(filepath.Dir(bin), "lib"))
	}
	if lang.Name == Fortran.Name {
		if c.module, err = module(c.compiler, c.args, c.includeDir, getenv); err != nil {
			return nil, err
		}
		if eight(c.args) {
			c.linked = append([]string{lang.Linked[0] + "8"}, lang.Linked[1:]...)
		}
	}
	return c, nil
}

func beside(bin, file string, folders ...string) string {
	for _, f := range folders {
		dir := filepath.Join(filepath.Dir(bin), f)
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return dir
		}
	}
	return ""
}

// findCompiler returns the compiler's words. make CC=impicc puts the wrapper itself
// into the environment: such a value is passed over.
func findCompiler(lang Language, given, self string, getenv func(string) string) ([]string, error) {
	if given != "" {
		return strings.Fields(given), nil
	}
	for _, v := range lang.Variables {
		words := strings.Fields(getenv(v))
		if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return isWrapper(w, self) }) {
			return words, nil
		}
	}
	for _, name := range lang.Compilers {
		if _, err := exec.LookPath(name); err == nil {
			return []string{name}, nil
		}
	}
	return nil, fmt.Errorf("%w: PATH has none of %s; name one with %sPROG or in %s",
		errNoCompiler, strings.Join(lang.Compilers, ", "), lang.Options[0], lang.Variables[0])
}

// isWrapper reports whether a word of CC is the program at self, or a sister of it
// in the same folder.
func isWrapper(word, self string) bool {
	if strings.HasPrefix(word, "-") {
		return false
	}
	path, err := exec.LookPath(word)
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if real, err = filepath.Abs(real); err != nil {
		return false
	}
	name := filepath.Base(real)
	return real == self || filepath.Dir(real) == filepath.Dir(self) && slices.Contains([]string{C.Name, CXX.Name, Fortran.Name}, name)
}

// links reports whether a compiler with such arguments makes a program.
func links(args []string) bool {
	stops := []string{"-c", "-S", "-E", "-M", "-MM", "-r", "-fsyntax-only"}
	input := false
	for _, a := range args {
		if slices.Contains(stops, a) {
			return false
		}
		input = input || a == "-" || !strings.HasPrefix(a, "-") || strings.HasPrefix(a, "-l")
	}
	return input
}

func (c *command) compileFlags() []string {
	return append([]string{"-I" + c.includeDir}, c.module...)
}

func (c *command) linkFlags() []string {
	flags := []string{"-L" + c.libDir}
	if c.rpath {
		flags = append(flags, "-Wl,-rpath,"+c.libDir, "-Wl,--enable-new-dtags")
	}
	return append(flags, c.linked...)
}

func (c *command) words() []string {
	words := slices.Concat(c.compiler, c.compileFlags(), c.args)
	if links(c.args) {
		words = append(words, c.linkFlags()...)
	}
	return words
}

func (c *command) program() (string, error) {
	path, err := exec.LookPath(c.compiler[0])
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCompiler, err)
	}
	return path, nil
}

func (c *command) show(what string) (string, error) {
	var words []string
	switch what {
	case "all":
		words = c.words()
		if len(c.args) == 0 {
			words = append(words, c.linkFlags()...)
		}
	case "command":
		words = c.compiler
	case "compile":
		words = c.compileFlags()
	case "link":
		words = c.linkFlags()
	case "compile command":
		words = slices.Concat(c.compiler, []string{"-c"}, c.compileFlags(), c.args)
	case "link command":
		words = slices.Concat(c.compiler, c.args, c.linkFlags())
	case "incdirs":
		words = []string{c.includeDir}
	case "libdirs":
		words = []string{c.libDir}
	case "libs":
		for _, l := range c.linked {
			words = append(words, strings.TrimPrefix(l, "-l"))
		}
	default:
		return "", fmt.Errorf("nothing is called %q", what)
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " "), nil
}

func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,:=+@%^", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
