package ui

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// What a picture of the page has at least: much of it is the colour behind everything, and the rest has
// text, whose edges have many colours, and lines.
const (
	pictureWidth  = 1280
	pictureHeight = 600
	fewColours    = 16
	mostBehind    = 0.995 // of all pixels
	leastBehind   = 0.20
	darkest       = 80 // of 255, of what is behind a dark page at most
	lightest      = 175
)

// shows returns why a picture is none of a page in a theme, dark or light.
func shows(picture []byte, theme string) error {
	m, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return err
	}
	if at := m.Bounds(); at.Dx() != pictureWidth || at.Dy() < pictureHeight {
		return fmt.Errorf("it has %d by %d pixels", at.Dx(), at.Dy())
	}
	colours := coloursOf(m)
	var behind color.RGBA
	for c, n := range colours {
		if n > colours[behind] {
			behind = c
		}
	}
	share := float64(colours[behind]) / float64(m.Bounds().Dx()*m.Bounds().Dy())
	if len(colours) < fewColours || share > mostBehind {
		return fmt.Errorf("it is blank: %d colours, and %.1f %% are one", len(colours), 100*share)
	}
	if share < leastBehind {
		return fmt.Errorf("no colour is behind everything: the most frequent one has %.1f %%", 100*share)
	}
	switch light := int(color.GrayModel.Convert(behind).(color.Gray).Y); {
	case theme == "dark" && light > darkest, theme == "light" && light < lightest:
		return fmt.Errorf("the page is %s, and what is behind it has a lightness of %d", theme, light)
	case theme != "dark" && theme != "light":
		return fmt.Errorf("the page is neither dark nor light, but %q", theme)
	}
	return nil
}

func coloursOf(m image.Image) map[color.RGBA]int {
	n := make(map[color.RGBA]int)
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			n[color.RGBAModel.Convert(m.At(x, y)).(color.RGBA)]++
		}
	}
	return n
}

// TestPictures: pictures that show nothing, or something of another colour or size, are found.
func TestPictures(t *testing.T) {
	drawn := func(width int, behind uint8, colours, share int) []byte {
		m := image.NewRGBA(image.Rect(0, 0, width, 900))
		for i := range m.Pix {
			m.Pix[i] = behind
		}
		for i := range m.Bounds().Dx() * 900 * share / 100 {
			m.SetRGBA(i%width, i/width, color.RGBA{uint8(i % colours), uint8(i % colours / 2), 99, 255})
		}
		for i := 3; i < len(m.Pix); i += 4 {
			m.Pix[i] = 255
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		picture []byte
		theme   string
		good    bool
	}{
		"light": {drawn(1280, 250, 100, 10), "light", true}, "dark": {drawn(1280, 20, 100, 10), "dark", true},
		"blank": {drawn(1280, 250, 100, 0), "light", false}, "few colours": {drawn(1280, 250, 5, 10), "light", false},
		"nothing behind": {drawn(1280, 250, 200, 95), "light", false}, "small": {drawn(640, 250, 100, 10), "light", false},
		"not dark": {drawn(1280, 250, 100, 10), "dark", false}, "not light": {drawn(1280, 20, 100, 10), "light", false},
		"no theme": {drawn(1280, 20, 100, 10), "", false}, "no picture": {[]byte("text"), "dark", false},
	} {
		if err := shows(c.picture, c.theme); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
