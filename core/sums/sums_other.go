//go:build !amd64

package sums

var floats, integers map[int]Loop
