package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// books are the texts to count where no other is asked for.
//
//go:embed text/*.gz
var books embed.FS

// load reads a text, or all books.
func load(file string) ([]byte, error) {
	if file == "" {
		return library()
	}
	data, err := os.ReadFile(file)
	if err == nil && strings.HasSuffix(file, ".gz") {
		data, err = unzip(data)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the text: %w", err)
	}
	return data, nil
}

func library() (all []byte, err error) {
	entries, err := books.ReadDir("text")
	if err != nil {
		return nil, err
	}
	for _, e := range entries { // sorted by name
		data, err := books.ReadFile("text/" + e.Name())
		if err == nil {
			data, err = unzip(data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		all = append(all, data...)
	}
	return all, nil
}

func unzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// split cuts a text into n parts of about the same length, between words: each
// part but the first begins with white space or is empty.
func split(text []byte, n int) [][]byte {
	parts := make([][]byte, n)
	from := 0
	for i := range parts {
		to := max(from, len(text)*(i+1)/n)
		for to < len(text) && !isSpace(text[to]) {
			to++
		}
		parts[i] = text[from:to]
		from = to
	}
	return parts
}

// isSpace knows ASCII only: no byte of a longer UTF-8 sequence looks like that.
func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// eachWord calls f with the words of a text: letters, and apostrophes between
// letters, in lower case. f must not keep the word.
func eachWord(text []byte, f func(word []byte)) {
	var word []byte
	apostrophe := false // one was seen after the last letter
	end := func() {
		if len(word) > 0 {
			f(word)
		}
		word, apostrophe = word[:0], false
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		switch {
		case unicode.IsLetter(r):
			if apostrophe {
				word, apostrophe = append(word, '\''), false
			}
			word = utf8.AppendRune(word, unicode.ToLower(r))
		case (r == '\'' || r == '’') && len(word) > 0 && !apostrophe:
			apostrophe = true
		default:
			end()
		}
	}
	end()
}
