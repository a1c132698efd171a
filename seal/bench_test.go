package seal_test

import (
	"testing"

	"github.com/samekey/samekey/seal"
)

// Sealing and opening a part of 1 KB.
func BenchmarkKilobyte(b *testing.B) {
	k, err := seal.New(fixed{}).Key(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	plain, place := make([]byte, 1<<10), seal.Context("samekey", "1", "v1##pk", "id", "answer")
	sealed := k.Seal(plain, place)
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.Seal(plain, place)
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := k.Open(sealed, place); err != nil {
				b.Fatal(err)
			}
		}
	})
}
