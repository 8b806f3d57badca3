package main

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
)

// levels is how many steps between isotherms the scale has.
const levels = 16

var errPicture = errors.New("unusable picture")

// maxSide bounds the fields that we load, in pixels.
const maxSide = 1 << 14

// readField reads temperatures from a PNG: black is 0, white is 1.
func readField(r io.ReadSeeker) (*field, error) {
	head, err := png.DecodeConfig(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPicture, err)
	}
	if head.Width < 1 || head.Height < 1 || head.Width > maxSide || head.Height > maxSide {
		return nil, fmt.Errorf("%w: %d x %d pixels, at most %d x %d", errPicture, head.Width, head.Height, maxSide, maxSide)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, err := png.Decode(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPicture, err)
	}
	f := newField(img.Bounds().Dx(), img.Bounds().Dy())
	for i := range f.t {
		x, y := img.Bounds().Min.X+i%f.width, img.Bounds().Min.Y+i/f.width
		grey := color.Gray16Model.Convert(img.At(x, y)).(color.Gray16)
		f.t[i] = float64(grey.Y) / math.MaxUint16
	}
	return f, nil
}

// writePicture writes a field as a PNG with scale by scale pixels per cell, with isotherms
// if wanted.
func writePicture(path string, f *field, scale int, isotherms bool) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = png.Encode(file, draw(f, scale, isotherms))
	return errors.Join(err, file.Close())
}

func draw(f *field, scale int, isotherms bool) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, f.width*scale, f.height*scale))
	for y := range f.height * scale {
		for x := range f.width * scale {
			px, py := (float64(x)+0.5)/float64(scale)-0.5, (float64(y)+0.5)/float64(scale)-0.5
			t := f.between(px, py)
			c := shade(t)
			if isotherms {
				d := 0.5 / float64(scale)
				gx := f.between(px+d, py) - f.between(px-d, py)
				gy := f.between(px, py+d) - f.between(px, py-d)
				c = lighten(c, 0.42*line(t, math.Hypot(gx, gy)))
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

func shade(t float64) color.NRGBA {
	t = min(max(t, 0), 1)
	return palette[int(math.Round(t*float64(len(palette)-1)))]
}

// line returns how much of a pixel an isotherm covers, where the temperature changes by
// slope from pixel to pixel. Where lines would merge there are none.
func line(t, slope float64) float64 {
	v := t * levels
	slope *= levels
	nearest := math.Round(v)
	if slope < 1e-4 || nearest < 1 || nearest > levels-1 {
		return 0
	}
	cover := min(max(1.1-math.Abs(v-nearest)/slope, 0), 1)
	return cover * min(max(1.5-5*slope, 0), 1)
}

func lighten(c color.NRGBA, by float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(float64(v) + by*(255-float64(v)))) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}
