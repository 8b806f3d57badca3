// Package hcldepth finds files in HCL that are nested too deep to be parsed.
package hcldepth

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// maxDepth is how deep brackets, strings, blocks and operators may be nested. The parser
// calls itself for each, and Go ends a program whose stack grows to a gigabyte.
const maxDepth = 100

// TooDeep finds where a file is nested too deep to be parsed.
func TooDeep(src []byte, file string) (at hcl.Range, found bool) {
	tokens, _ := hclsyntax.LexConfig(src, file, hcl.InitialPos) // the parser reports what is wrong with the tokens
	depth, operators := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc,
			hclsyntax.TokenTemplateSeqEnd:
			depth = max(depth-1, 0)
		case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenQuestion, hclsyntax.TokenColon:
			operators++
		case hclsyntax.TokenNewline:
			operators = 0
		}
		if depth > maxDepth || operators > maxDepth {
			return t.Range, true
		}
	}
	return at, false
}
