package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

type faults struct {
	file  string
	lines []string
	list  Diagnostics
}

func (f *faults) fault(pos Pos, problem, remedy string) { f.add(Error, pos, problem, remedy) }

func (f *faults) warn(pos Pos, problem, remedy string) { f.add(Warning, pos, problem, remedy) }

func (f *faults) add(severity Severity, pos Pos, problem, remedy string) {
	pos.File = cmp.Or(pos.File, f.file)
	d := Diagnostic{Severity: severity, Pos: pos, Problem: problem, Remedy: remedy}
	d.Source = sourceLine(f.lines, pos)
	// A fault that concerns several sites is found at each of them.
	same := func(other Diagnostic) bool { return other.Pos == d.Pos && other.Problem == d.Problem }
	if !slices.ContainsFunc(f.list, same) {
		f.list = append(f.list, d)
	}
}

func sourceLine(lines []string, pos Pos) string {
	if pos.Line < 1 || pos.Line > len(lines) {
		return ""
	}
	return lines[pos.Line-1]
}

func (f *faults) sorted() Diagnostics {
	slices.SortStableFunc(f.list, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return f.list
}

func splitLines(src []byte) []string {
	lines := strings.Split(string(src), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

func quote(s string) string { return strconv.Quote(s) }

func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// plural returns a number of things: "1 client", "2 clients".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return itoa(n) + " " + thing + "s"
}

func article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// public are the attributes whose strings anybody may read. Of command only the program may be
// read; the strings of all other attributes may be secret.
var public = []string{
	"address", "hosts", "network", "channels_from", "listen", "server", "head", "plugin", "plugin_dir", "source", "version", "keys", "sha256", "path", "trace", "dir",
	"prefer", "data_plane", "representation", "implementation", "dialect", "ipv4", "versions", "omit", "bind", "level", "format",
	"calls", "short", "timeout", "start", "stop", "resume", "silence", "spin", "procs", "names", "tls", "mpicc",
}

// Open returns the job file without comments, and with … instead of strings that may be secret,
// such as the values of env and the arguments of programs. It is empty in jobs without a file.
func (j *Job) Open() string {
	src := []byte(strings.Join(j.source, "\n") + "\n")
	tokens, _ := hclsyntax.LexConfig(src, j.File, hcl.InitialPos) // a file with faults has no job
	var b strings.Builder
	attr, depth, strs, at := "", 0, 0, 0
	var blocks []string // types of the open blocks
	for i, t := range tokens {
		text := t.Bytes
		b.Write(src[at:t.Range.Start.Byte]) // blanks
		at = t.Range.End.Byte
		switch t.Type {
		case hclsyntax.TokenComment:
			if text = nil; strings.HasSuffix(string(t.Bytes), "\n") {
				text, attr = []byte("\n"), ""
			}
		case hclsyntax.TokenIdent:
			if depth == 0 && i+1 < len(tokens) && tokens[i+1].Type == hclsyntax.TokenEqual {
				attr, strs = string(text), 0
			}
		case hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp:
			depth++
		case hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenOBrace:
			if attr != "" {
				depth++
			} else {
				blocks = append(blocks, blockBefore(tokens[:i]))
			}
		case hclsyntax.TokenCBrace:
			if depth > 0 {
				depth--
			} else {
				attr, blocks = "", blocks[:max(0, len(blocks)-1)]
			}
		case hclsyntax.TokenNewline:
			if depth == 0 {
				attr = ""
			}
		case hclsyntax.TokenNumberLit:
			if attr == "env" || slices.Contains(blocks, "config") {
				text = []byte("…")
			}
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			key := depth > 0 && i+2 < len(tokens) && tokens[i+2].Type == hclsyntax.TokenEqual // key of a map
			strs++
			known := slices.Contains(public, attr) || attr == "command" && strs == 1
			if attr != "" && !key && (!known || slices.Contains(blocks, "config")) { // only a plugin can interpret config
				text = []byte("…")
			}
		}
		b.Write(text)
	}
	var kept []string
	for line := range strings.SplitSeq(b.String(), "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// blockBefore returns the type of the block that begins behind these tokens.
func blockBefore(tokens hclsyntax.Tokens) (name string) {
	for i := len(tokens) - 1; i >= 0; i-- {
		switch tokens[i].Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenOBrace, hclsyntax.TokenCBrace, hclsyntax.TokenComment:
			return name
		case hclsyntax.TokenIdent:
			name = string(tokens[i].Bytes)
		}
	}
	return name
}
