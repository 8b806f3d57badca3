package main

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestBoardIsARealScene(t *testing.T) {
	f, err := readField(bytes.NewReader(board))
	if err != nil {
		t.Fatal(err)
	}
	var hot, cold int
	shades := map[float64]bool{}
	for _, v := range f.t {
		shades[v] = true
		switch v {
		case 0:
			cold++
		case 1:
			hot++
		}
	}
	if f.width < 256 || f.height < 256 || len(shades) < 100 || hot < 500 || cold < 5000 {
		t.Errorf("%d x %d, %d shades, %d hot and %d cold cells", f.width, f.height, len(shades), hot, cold)
	}
}

func encoded(t *testing.T, img image.Image) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

func TestReadField(t *testing.T) {
	img := image.NewRGBA(image.Rect(5, 5, 8, 6)) // not at the origin
	img.Set(5, 5, color.White)
	img.Set(6, 5, color.Black)
	img.Set(7, 5, color.RGBA{0, 255, 0, 255})
	f, err := readField(encoded(t, img))
	if err != nil {
		t.Fatal(err)
	}
	if f.width != 3 || f.height != 1 || f.t[0] != 1 || f.t[1] != 0 || f.t[2] < 0.5 || f.t[2] > 0.7 {
		t.Errorf("got %+v", f)
	}
}

func TestReadFieldRefuses(t *testing.T) {
	whole, _ := os.ReadFile("board.png")
	for name, data := range map[string][]byte{"nothing": nil, "text": []byte("no picture"), "half": whole[:len(whole)/2]} {
		if _, err := readField(bytes.NewReader(data)); !errors.Is(err, errPicture) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A header that promises more than fits in memory.
	huge := bytes.Clone(whole[:33])
	copy(huge[16:], []byte{0x7f, 0xff, 0xff, 0xff})
	if _, err := readField(bytes.NewReader(huge)); !errors.Is(err, errPicture) {
		t.Errorf("huge: %v", err)
	}
}

// Hotter is lighter, in even steps, and never grey in between.
func TestPaletteIsEven(t *testing.T) {
	luma := func(c color.NRGBA) int { return 299*int(c.R) + 587*int(c.G) + 114*int(c.B) }
	if lo, hi := luma(palette[0]), luma(palette[len(palette)-1]); lo > 25_000 || hi < 230_000 {
		t.Errorf("from %d to %d", lo, hi)
	}
	const part = 32
	for i := part; i < len(palette); i += part {
		if luma(palette[i]) <= luma(palette[i-part]) {
			t.Errorf("colour %d is not lighter than colour %d", i, i-part)
		}
	}
}

func TestPictureShowsTheField(t *testing.T) {
	f := &field{2, 1, []float64{0, 1}}
	path := filepath.Join(t.TempDir(), "f.png")
	if err := writePicture(path, f, 3, false); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds().Dx() != 6 || img.Bounds().Dy() != 3 {
		t.Fatalf("%v", img.Bounds())
	}
	first, last := color.NRGBAModel.Convert(img.At(0, 0)), color.NRGBAModel.Convert(img.At(5, 2))
	if first != palette[0] || last != palette[len(palette)-1] {
		t.Errorf("%v and %v at the ends", first, last)
	}
}

func TestIsotherms(t *testing.T) {
	f := newField(64, 8)
	for i := range f.t {
		f.t[i] = float64(i%64) / 63 * 2 / levels // passes one level, in the middle
	}
	plain, lined := draw(f, 1, false), draw(f, 1, true)
	for x := 2; x < 62; x++ {
		near := x >= 31 && x <= 32
		if differs := plain.At(x, 4) != lined.At(x, 4); near && !differs || !near && differs && (x < 30 || x > 33) {
			t.Errorf("column %d: line %v", x, differs)
		}
	}
}

func TestPictureNeedsItsFolder(t *testing.T) {
	if err := writePicture(filepath.Join(t.TempDir(), "no", "f.png"), newField(1, 1), 1, false); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
