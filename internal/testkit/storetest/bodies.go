package storetest

import (
	"bytes"
	mathrand "math/rand/v2"
)

// Noise returns n bytes that can't be compressed. Each call returns the same bytes.
func Noise(n int) []byte {
	b := make([]byte, n)
	_, _ = mathrand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// Prose returns n bytes that compress well.
func Prose(n int) []byte {
	const line = `{"ride":"from here to there","price":{"amount":2000,"currency":"usd"}},`
	return bytes.Repeat([]byte(line), n/len(line)+1)[:n]
}
