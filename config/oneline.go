package config

import (
	"bytes"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// source is a job file on its way to the HCL parser. HCL allows one attribute
// and no block in a block that stands on one line; job files may have more, as
// in host { address = "127.0.0.2"  procs = 4 }. For this, text has line breaks
// that the file does not have, and places are counted back. Nor does HCL allow
// templates in labels, as in site "${env.NAME}": in text as many other letters
// stand for each, and the decoder evaluates what the file has.
type source struct {
	original  []byte
	text      []byte
	breaks    []int    // offsets in text of the line breaks that were put in
	templates [][2]int // offsets in original of templates in labels: first byte, end (exclusive)
}

// newSource puts line breaks between the statements of src that share a line.
// A file with broken syntax stays as it is; the parser says why.
func newSource(src []byte) *source {
	s := &source{original: src, text: src}
	tokens, diags := hclsyntax.LexConfig(src, "", hcl.InitialPos)
	if diags.HasErrors() {
		return s
	}
	b := lineBreaker{}
	for _, t := range tokens {
		if t.Type == hclsyntax.TokenEOF || !b.step(t) {
			break
		}
	}
	if b.lost {
		return s
	}
	s.text = nil
	s.templates = b.templates
	src = slices.Clone(src)
	for _, t := range b.templates {
		copy(src[t[0]:t[1]], bytes.Repeat([]byte("_"), t[1]-t[0]))
	}
	from := 0
	for _, at := range b.at {
		s.text = append(s.text, src[from:at]...)
		s.breaks = append(s.breaks, len(s.text))
		s.text = append(s.text, '\n')
		from = at
	}
	s.text = append(s.text, src[from:]...)
	return s
}

// offset turns an offset in text into one in the file.
func (s *source) offset(i int) int {
	i -= sort.SearchInts(s.breaks, i)
	return max(0, min(i, len(s.original)))
}

func (s *source) written(r hcl.Range) []byte {
	start := s.offset(r.Start.Byte)
	return s.original[start:max(start, s.offset(r.End.Byte))]
}

func (s *source) templated(r hcl.Range) bool {
	start, end := s.offset(r.Start.Byte), s.offset(r.End.Byte)
	return slices.ContainsFunc(s.templates, func(t [2]int) bool { return start <= t[0] && t[1] <= end })
}

// pos returns the position, in the file, of the part of r on its first line.
func (s *source) pos(file string, r hcl.Range) Pos {
	start, end := s.offset(r.Start.Byte), s.offset(r.End.Byte)
	lineStart, line := 0, 1
	for i, c := range s.original[:start] {
		if c == '\n' {
			lineStart, line = i+1, line+1
		}
	}
	end = max(start, end)
	if i := slices.Index(s.original[start:end], '\n'); i >= 0 {
		end = start + i
	}
	column := 1 + utf8.RuneCount(s.original[lineStart:start])
	width := utf8.RuneCount(s.original[start:end])
	return Pos{File: file, Line: line, Column: column, EndColumn: column + width}
}

type lineBreaker struct {
	state  breakState
	prev   hclsyntax.TokenType
	bodies int // open blocks
	depth  int // open brackets and quotes of the expression, or of a label's template
	at     []int
	lost   bool // the file is not valid HCL

	template  int      // where a label's template begins
	templates [][2]int // templates seen so far
}

// nesting returns 1 for a token that opens a bracket, a quote or a template, -1 for one that closes
// it, else 0.
func nesting(t hclsyntax.TokenType) int {
	switch t {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		return 1
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		return -1
	}
	return 0
}

type breakState uint8

const (
	atStatement  breakState = iota
	inHeader                // after a name, before = or {
	inExpression            // after =
)

func endsLine(t hclsyntax.TokenType) bool {
	return t == 0 || t == hclsyntax.TokenNewline || t == hclsyntax.TokenComment
}

func endsOperand(t hclsyntax.TokenType) bool {
	switch t {
	case hclsyntax.TokenCQuote, hclsyntax.TokenNumberLit, hclsyntax.TokenIdent,
		hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCBrace:
		return true
	}
	return false
}

// step takes a token and reports whether to go on.
func (b *lineBreaker) step(t hclsyntax.Token) bool {
	switch b.state {
	case atStatement:
		b.statement(t)
	case inHeader:
		b.header(t)
	case inExpression:
		b.expression(t)
	}
	b.prev = t.Type
	return !b.lost
}

func (b *lineBreaker) statement(t hclsyntax.Token) {
	switch {
	case endsLine(t.Type):
	case t.Type == hclsyntax.TokenCBrace && b.bodies > 0:
		b.closeBody(t)
	case t.Type == hclsyntax.TokenIdent:
		b.breakBefore(t)
		b.state = inHeader
	default:
		b.lost = true
	}
}

func (b *lineBreaker) header(t hclsyntax.Token) {
	if b.depth > 0 {
		if b.depth += nesting(t.Type); b.depth == 0 {
			b.templates = append(b.templates, [2]int{b.template, t.Range.End.Byte})
		}
		return
	}
	switch t.Type {
	case hclsyntax.TokenTemplateInterp:
		b.depth, b.template = 1, t.Range.Start.Byte
	case hclsyntax.TokenEqual:
		b.state, b.depth = inExpression, 0
	case hclsyntax.TokenOBrace:
		b.state = atStatement
		b.bodies++
	case hclsyntax.TokenIdent, hclsyntax.TokenOQuote, hclsyntax.TokenQuotedLit, hclsyntax.TokenCQuote:
	default:
		b.lost = true
	}
}

func (b *lineBreaker) expression(t hclsyntax.Token) {
	if change := nesting(t.Type); change > 0 || b.depth > 0 {
		b.depth += change
		return
	}
	switch {
	case endsLine(t.Type):
		b.state = atStatement
	case t.Type == hclsyntax.TokenCBrace && b.bodies > 0:
		b.state = atStatement
		b.closeBody(t)
	case t.Type == hclsyntax.TokenIdent && endsOperand(b.prev):
		// A name after a complete operand begins the next statement.
		b.breakBefore(t)
		b.state = inHeader
	}
}

func (b *lineBreaker) closeBody(t hclsyntax.Token) {
	b.bodies--
	if b.prev != hclsyntax.TokenOBrace {
		b.breakBefore(t)
	}
}

func (b *lineBreaker) breakBefore(t hclsyntax.Token) {
	if !endsLine(b.prev) {
		b.at = append(b.at, t.Range.Start.Byte)
	}
}
