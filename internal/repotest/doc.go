// Package repotest lets the repository test itself: which package may import
// which, what core may touch, that everything exported is explained, how long
// files and functions may be, and a few habits of tests.
//
// Each rule is a function from the parsed repository to problems, and each one
// is proved on a small bad example: a rule that cannot fail is no rule.
package repotest
