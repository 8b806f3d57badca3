// Command scene draws board.png, the initial field of heat2d: a circuit board as
// a thermal camera shows it, the brighter the hotter.
//
//	go run ./testdata/scene -out board.png
package main

import (
	"flag"
	"image"
	"image/color"
	"image/png"
	"log"
	"math"
	"os"
)

const (
	width, height = 512, 384

	cold = 0 // held at the lowest temperature: the cooling pipe, the holes
	hot  = 1 // held at the highest: the dies
)

func main() {
	out := flag.String("out", "board.png", "the file to write")
	flag.Parse()
	f, err := os.Create(*out)
	if err != nil {
		log.Fatal(err)
	}
	if err := png.Encode(f, draw()); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}

// draw paints from the back to the front.
func draw() image.Image {
	c := newCanvas()
	traces(c)
	pipe(c)
	processor(c, 262, 196)
	for i := range 4 {
		memory(c, 398, 74+72*float64(i))
	}
	regulators(c)
	connectors(c)
	for _, p := range []point{{22, 22}, {490, 22}, {22, 362}, {490, 362}} {
		c.fill(0.46, circle(p.x, p.y, 12))
		c.fill(cold, circle(p.x, p.y, 6.5))
	}
	return c.image()
}

// traces are copper lines with bends of 45 degrees, a little warmer than the board.
func traces(c *canvas) {
	for i := range 11 {
		y := 140 + 10*float64(i)
		end := 56 + 24*float64(i)
		bend := math.Abs(end-y) + 330
		c.fill(0.34, stroke(1.3, point{300, y}, point{bend - math.Abs(end-y), y}, point{bend, end}, point{398, end}))
	}
	for i := range 9 {
		x := 226 + 9*float64(i)
		to := 172 + 22*float64(i)
		drop := math.Abs(to - x)
		c.fill(0.31, stroke(1.1, point{x, 200}, point{x, 262}, point{to, 262 + drop}, point{to, 362}))
		c.fill(0.40, circle(to, 330, 2.6))
		c.fill(0.10, circle(to, 330, 1.1))
	}
	for i := range 7 {
		y := 158 + 13*float64(i)
		c.fill(0.32, stroke(1.1, point{250, y}, point{196 - 4*float64(i), y}, point{176 - 4*float64(i), y + 20}, point{118, y + 20}))
	}
}

// pipe is a cooling pipe that winds between the parts.
func pipe(c *canvas) {
	path := []point{
		{-20, 118}, {44, 118}, {44, 60}, {122, 60}, {122, 108}, {204, 108}, {204, 44}, {286, 44}, {286, 104}, {352, 104},
		{352, 30}, {446, 30}, {446, 352}, {356, 352}, {356, 300}, {150, 300}, {150, 352}, {60, 352}, {60, 262}, {-20, 262},
	}
	path = rounded(path, 13)
	c.fill(0.13, stroke(6.5, path...))
	c.fill(cold, stroke(3.6, path...))
}

// processor is the large chip: substrate, small parts around, spreader, dies.
func processor(c *canvas, x, y float64) {
	c.fill(0.40, box(x, y, 62, 62, 5))
	for i := range 11 {
		d := -50 + 10*float64(i)
		for _, p := range []point{{x + d, y - 55}, {x + d, y + 55}, {x - 55, y + d}, {x + 55, y + d}} {
			c.fill(0.56, box(p.x, p.y, 2.2, 2.2, 0.6))
		}
	}
	c.glow(0.30, x, y, 58)
	c.fill(0.70, box(x, y, 40, 40, 4))
	c.fill(0.84, box(x-10, y, 20, 29, 2))
	c.fill(0.80, box(x+25, y, 9, 29, 2))
	for i := range 2 {
		for j := range 3 {
			c.fill(hot, box(x-19+18*float64(i), y-19+19*float64(j), 6.2, 6.4, 1))
		}
	}
	c.fill(0.93, box(x+25, y-14, 6, 10, 1))
	c.fill(0.90, box(x+25, y+12, 6, 12, 1))
}

// memory is one of the chips on the right, each as warm as it has work to do.
func memory(c *canvas, x, y float64) {
	load := 0.5 + 0.5*math.Sin(y/31)
	for i := range 9 {
		c.fill(0.48, box(x-24, y-20+5*float64(i), 4, 1.2, 0.3), box(x+24, y-20+5*float64(i), 4, 1.2, 0.3))
	}
	c.fill(0.38+0.20*load, box(x, y, 22, 25, 2))
	c.glow(0.18*load, x, y, 24)
	c.fill(0.50+0.30*load, box(x, y, 13, 16, 1))
	if load > 0.6 {
		c.fill(hot, box(x, y+4, 5, 6, 1))
	}
	c.fill(0.28, circle(x-16, y-19, 2))
}

// regulators are the coils, capacitors and switches at the left.
func regulators(c *canvas) {
	for i := range 4 {
		y := 142 + 36*float64(i)
		warm := []float64{0.52, 0.74, 0.66, 0.47}[i]
		c.fill(warm-0.14, box(84, y, 15, 14, 4))
		c.fill(warm, circle(84, y, 10.5))
		c.fill(warm+0.12, ring(84, y, 7.5, 1.3))
		c.fill(warm-0.10, circle(84, y, 3.4))
		c.fill(0.42, box(116, y, 9, 10, 1))
		c.fill(warm+0.10, box(115, y, 5.5, 6.5, 1))
		if i == 1 {
			c.fill(hot, box(115, y, 3.2, 4, 0.5))
		}
		c.fill(0.36, circle(50, y, 9))
		c.fill(0.24, circle(50, y, 7))
		c.fill(0.30, stroke(0.7, point{45, y}, point{55, y}), stroke(0.7, point{50, y - 5}, point{50, y + 5}))
	}
	for i := range 6 {
		c.fill(0.50, box(204+13*float64(i), 274, 3.4, 2, 0.4))
		c.fill(0.44, box(330, 150+15*float64(i), 2, 3.6, 0.4))
	}
}

// connectors are two rows of pins: at the top and at the bottom edge.
func connectors(c *canvas) {
	c.fill(0.17, box(166, 18, 62, 9, 2))
	for i := range 16 {
		c.fill(0.52, circle(110+7.5*float64(i), 14.5, 1.8), circle(110+7.5*float64(i), 21.5, 1.8))
	}
	c.fill(0.19, box(260, 371, 100, 7, 1))
	for i := range 24 {
		c.fill(0.47, box(168+8*float64(i), 373, 2.4, 5, 0.3))
	}
	// A connector that carries the current in, and is hot for it.
	c.fill(0.30, box(14, 196, 12, 26, 2))
	c.fill(0.80, box(13, 186, 6, 7, 1))
	c.fill(0.24, box(13, 207, 6, 7, 1))
	c.fill(hot, circle(13, 186, 2.6))
}

type point struct{ x, y float64 }

// shape returns the distance of a point to its edge, negative inside.
type shape func(x, y float64) float64

func circle(cx, cy, r float64) shape {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - r }
}

func ring(cx, cy, r, half float64) shape {
	return func(x, y float64) float64 { return math.Abs(math.Hypot(x-cx, y-cy)-r) - half }
}

// box has half a width and height, and rounded corners.
func box(cx, cy, hw, hh, round float64) shape {
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx)-hw+round, math.Abs(y-cy)-hh+round
		return math.Hypot(max(dx, 0), max(dy, 0)) + min(max(dx, dy), 0) - round
	}
}

// stroke is a line of straight parts with round joints, 2*half thick.
func stroke(half float64, path ...point) shape {
	return func(x, y float64) float64 {
		d := math.Inf(1)
		for i := range path[1:] {
			d = min(d, toSegment(x, y, path[i], path[i+1]))
		}
		return d - half
	}
}

// rounded replaces the corners of a path by arcs that begin cut before them.
func rounded(path []point, cut float64) []point {
	out := []point{path[0]}
	for i := 1; i < len(path)-1; i++ {
		from, to := towards(path[i], path[i-1], cut), towards(path[i], path[i+1], cut)
		for s := range 9 {
			t := float64(s) / 8
			a, b := between(from, path[i], t), between(path[i], to, t)
			out = append(out, between(a, b, t))
		}
	}
	return append(out, path[len(path)-1])
}

func towards(a, b point, d float64) point { return between(a, b, d/math.Hypot(b.x-a.x, b.y-a.y)) }

func between(a, b point, t float64) point { return point{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)} }

func toSegment(x, y float64, a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	t := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		t = min(max(((x-a.x)*dx+(y-a.y)*dy)/l, 0), 1)
	}
	return math.Hypot(x-a.x-t*dx, y-a.y-t*dy)
}

// canvas is a field of temperatures between cold and hot.
type canvas struct{ t [height][width]float64 }

// newCanvas is the bare board: a little warmer in the middle, with a weave.
func newCanvas() *canvas {
	c := new(canvas)
	for y := range height {
		for x := range width {
			fx, fy := float64(x), float64(y)
			r := math.Hypot((fx-270)/340, (fy-200)/270)
			weave := 0.012 * math.Sin(fx*0.9) * math.Sin(fy*0.9)
			c.t[y][x] = 0.25 - 0.10*r*r + weave + 0.02*cloud(fx/46, fy/46) + 0.012*(hash(x, y)-0.5)
		}
	}
	return c
}

// cloud is smooth noise between -1 and 1.
func cloud(x, y float64) float64 {
	ix, iy := math.Floor(x), math.Floor(y)
	sx, sy := ease(x-ix), ease(y-iy)
	at := func(dx, dy int) float64 { return hash(int(ix)+dx, int(iy)+dy) }
	top := at(0, 0) + sx*(at(1, 0)-at(0, 0))
	bottom := at(0, 1) + sx*(at(1, 1)-at(0, 1))
	return 2*(top+sy*(bottom-top)) - 1
}

func ease(t float64) float64 { return t * t * (3 - 2*t) }

// hash is a number from 0 to 1 that looks random.
func hash(x, y int) float64 {
	h := uint32(x)*0x9e3779b1 ^ uint32(y)*0x85ebca77
	h = (h ^ h>>15) * 0x2c1b3c6d
	h = (h ^ h>>12) * 0x297a2d39
	return float64(h^h>>15) / math.MaxUint32
}

// fill paints shapes with one temperature, their edges smoothed.
func (c *canvas) fill(t float64, shapes ...shape) {
	for y := range height {
		for x := range width {
			d := math.Inf(1)
			for _, s := range shapes {
				d = min(d, s(float64(x)+0.5, float64(y)+0.5))
			}
			cover := min(max(0.5-d, 0), 1)
			c.t[y][x] += cover * (t - c.t[y][x])
		}
	}
}

// glow warms the surroundings of a part.
func (c *canvas) glow(by, cx, cy, radius float64) {
	for y := range height {
		for x := range width {
			r := math.Hypot(float64(x)-cx, float64(y)-cy) / radius
			c.t[y][x] += by * math.Exp(-r*r) * (1 - c.t[y][x])
		}
	}
}

func (c *canvas) image() image.Image {
	img := image.NewGray(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			v := uint8(math.Round(min(max(c.t[y][x], 0), 1) * 255))
			img.SetGray(x, y, color.Gray{Y: v})
		}
	}
	return img
}
