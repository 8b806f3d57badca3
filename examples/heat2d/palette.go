package main

import (
	"image/color"
	"math"
)

// palette goes from cold to hot. Its lightness grows evenly, so that equal
// differences of temperature look equally large, also in grey and to people who
// see fewer colours.
var palette = makePalette()

// Colours in OKLCh, lightness apart: where on the scale, how strong, which hue
// in degrees.
var hues = []struct{ at, chroma, hue float64 }{
	{0.00, 0.045, 262},
	{0.14, 0.110, 281},
	{0.30, 0.160, 306},
	{0.46, 0.185, 352},
	{0.62, 0.180, 391},
	{0.78, 0.155, 425},
	{0.90, 0.130, 449},
	{1.00, 0.060, 464},
}

const darkest, lightest = 0.13, 0.975

func makePalette() (p [1024]color.NRGBA) {
	for i := range p {
		t := float64(i) / float64(len(p)-1)
		chroma, hue := hueAt(t)
		p[i] = fromOKLCh(darkest+t*(lightest-darkest), chroma, hue*math.Pi/180)
	}
	return p
}

func hueAt(t float64) (chroma, hue float64) {
	k := 0
	for k < len(hues)-2 && t > hues[k+1].at {
		k++
	}
	a, b := hues[k], hues[k+1]
	before, after := hues[max(k-1, 0)], hues[min(k+2, len(hues)-1)]
	span := b.at - a.at
	s := (t - a.at) / span
	into := span / (b.at - before.at)
	outOf := span / (after.at - a.at)
	chroma = hermite(s, a.chroma, b.chroma, into*(b.chroma-before.chroma), outOf*(after.chroma-a.chroma))
	hue = hermite(s, a.hue, b.hue, into*(b.hue-before.hue), outOf*(after.hue-a.hue))
	return chroma, hue
}

// hermite is the cubic from a to b with the slopes da and db.
func hermite(s, a, b, da, db float64) float64 {
	return a + s*(da+s*(3*(b-a)-2*da-db+s*(2*(a-b)+da+db)))
}

// fromOKLCh returns the colour in sRGB. One that a screen cannot show loses
// chroma, not lightness.
func fromOKLCh(l, chroma, hue float64) color.NRGBA {
	for {
		r, g, b := okLab(l, chroma*math.Cos(hue), chroma*math.Sin(hue))
		if chroma < 1e-3 || min(r, g, b) >= 0 && max(r, g, b) <= 1 {
			return color.NRGBA{gamma(r), gamma(g), gamma(b), 255}
		}
		chroma *= 0.98
	}
}

// okLab gives linear red, green and blue.
func okLab(l, a, b float64) (red, green, blue float64) {
	x := l + 0.3963377774*a + 0.2158037573*b
	y := l - 0.1055613458*a - 0.0638541728*b
	z := l - 0.0894841775*a - 1.2914855480*b
	x, y, z = x*x*x, y*y*y, z*z*z
	red = 4.0767416621*x - 3.3077115913*y + 0.2309699292*z
	green = -1.2684380046*x + 2.6097574011*y - 0.3413193965*z
	blue = -0.0041960863*x - 0.7034186147*y + 1.7076147010*z
	return red, green, blue
}

// gamma encodes a linear value for sRGB.
func gamma(v float64) uint8 {
	v = min(max(v, 0), 1)
	if v <= 0.0031308 {
		v *= 12.92
	} else {
		v = 1.055*math.Pow(v, 1/2.4) - 0.055
	}
	return uint8(math.Round(255 * v))
}
