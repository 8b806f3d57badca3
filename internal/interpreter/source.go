package interpreter

import _ "embed" // for the program in C

// C is the source of the interpreter in C, for peers whose programs are compiled with their own
// MPI.
//
//go:embed c/interpreter.c
var C string
