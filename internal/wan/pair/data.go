package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// dataOf returns a message of data of a kind: zeros; integers, of 4 bytes, below 1000; doubles, of
// a smooth field; digits, such doubles of which six digits count; or noise.
func dataOf(kind string) ([]byte, error) {
	data := make([]byte, length)
	r := rand.New(rand.NewPCG(1, 1))
	switch kind {
	case "zeros":
	case "integers":
		for i := 0; i < length; i += 4 {
			binary.LittleEndian.PutUint32(data[i:], uint32(r.IntN(1000)))
		}
	case "doubles", "digits":
		for i := 0; i < length; i += 8 {
			row, column := float64(i/8/256), float64(i/8%256)
			x := 20 + 80*math.Sin(row/40)*math.Exp(-column/90)
			if kind == "digits" {
				x = math.Round(x*1e4) / 1e4
			}
			binary.LittleEndian.PutUint64(data[i:], math.Float64bits(x))
		}
	case "noise":
		for i := range data {
			data[i] = byte(r.Uint32())
		}
	default:
		return nil, fmt.Errorf("%q: data are zeros, integers, doubles, digits or noise", kind)
	}
	return data, nil
}
