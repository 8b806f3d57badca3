package interpreter

import _ "embed" // for the program in C

// C is the interpreter in C.
//
//go:embed c/interpreter.c
var C string
