package item

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// stream is a DEFLATE stream of n zeros.
func stream(n int) []byte {
	var buf bytes.Buffer
	w, _ := flate.NewWriter(&buf, flate.BestCompression)
	zeros := make([]byte, 1<<16)
	for ; n > 0; n -= len(zeros) {
		_, _ = w.Write(zeros[:min(n, len(zeros))])
	}
	_ = w.Close()
	return buf.Bytes()
}

func TestDeflateRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "body")
		if got, err := Inflate(Deflate(body), len(body)); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes came back as %d, %v", len(body), len(got), err)
		}
	})
}

// Bad input: a stored body that another hand has written is refused, and takes no more
// memory than the largest body does, nor the time that its whole length would.
func TestHostileBodiesAreRefused(t *testing.T) {
	sound := Deflate([]byte(strings.Repeat("sound ", 100)))
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("another format"))
	_ = z.Close()
	var bomb bytes.Buffer // a window of 2 GB, as zstd offers one: a frame of repeated blocks
	bomb.WriteString("\x28\xb5\x2f\xfd\x00\xa8")
	for range 1000 {
		bomb.WriteString("\xfa\xff\x0f\x00") // 128 KB of one byte
	}
	for name, tt := range map[string]struct {
		body []byte
		want string
	}{
		"a byte more than the limit":   {stream(MaxStored + 1), "more than"},
		"a bomb of 100 MB":             {stream(100 << 20), "more than"},
		"nothing":                      {nil, "EOF"},
		"cut":                          {sound[:len(sound)-1], "EOF"},
		"more after the end":           {append(bytes.Clone(sound), 0), "after the end"},
		"a second stream":              {append(bytes.Clone(sound), sound...), "after the end"},
		"back before the begin":        {[]byte{0x4b, 0x04, 0x22, 0x00}, "corrupt"},
		"no kind of block":             {[]byte{0x07}, "corrupt"},
		"stored blocks without an end": {bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 80_000), "EOF"},
		"gzip":                         {zipped.Bytes(), "corrupt"},
		"zstd with a window of 2 GB":   {bomb.Bytes(), "corrupt"},
		"text":                         {[]byte(`{"an":"answer"}`), "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := Inflate(tt.body, MaxStored)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("%d bytes, %v; want an error with %q", len(got), err, tt.want)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 8*MaxStored {
				t.Errorf("%d MB are taken in all", taken>>20)
			}
		})
	}
	if got, err := Inflate(stream(MaxStored), MaxStored); err != nil || len(got) != MaxStored {
		t.Errorf("the largest body comes back as %d bytes, %v", len(got), err)
	}
}
