package retrysign

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// counted is the value of a header with a count.
func counted(name, count string) string {
	if name == amzSDKRequest {
		return "ttl=20261124T120000Z; attempt=" + count + "; max=3"
	}
	return count
}

// Each header says from its first retry on that there is one.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, h := range All() {
		if h.Name != http.CanonicalHeaderKey(h.Name) || !Is(h.Name) || h.Senders == "" || !strings.HasPrefix(h.Source, "https://") {
			t.Errorf("%+v", h)
		}
		for count, want := range map[int]bool{0: false, h.First: false, h.First + 1: true, 345_600: true} {
			if got := In(http.Header{h.Name: {counted(h.Name, strconv.Itoa(count))}}); got != want {
				t.Errorf("%s %d: %t, want %t", h.Name, count, got, want)
			}
		}
	}
	if Is("Retry-After") || In(nil) || In(http.Header{"Retry-After": {"2"}}) {
		t.Error("another header is taken for one")
	}
}

// What is no count is no retry.
func TestNoCountIsNoRetry(t *testing.T) {
	t.Parallel()
	for _, count := range []string{
		"", " ", "-1", "-2", "+2", "2.5", "2e1", "0x2", "two", "٢", "2,3", "2, 3", "2;3", "2 3", "1000000000", strings.Repeat("9", 100), "18446744073709551618", "\x00", "2\r\n",
	} {
		for _, h := range all {
			if In(http.Header{h.Name: {counted(h.Name, count)}}) && h.Name != amzSDKRequest {
				t.Errorf("%s: %q is a retry", h.Name, count)
			}
		}
		if Above(count, 0) {
			t.Errorf("%q is a count", count)
		}
	}
	for _, h := range all {
		if In(http.Header{h.Name: {counted(h.Name, "2"), counted(h.Name, "3")}}) || In(http.Header{h.Name: {}}) {
			t.Errorf("%s twice, or without a value, is a retry", h.Name)
		}
	}
	for _, value := range []string{"attempt=2; attempt=3", "attempt=x; attempt=3", "attempt", "attempt=", "max=3", "Attempt=2", "3", "attempt=2,attempt=3", "attempt=-2", ";;;"} {
		if In(http.Header{amzSDKRequest: {value}}) {
			t.Errorf("%q is a retry", value)
		}
	}
}

func FuzzIn(f *testing.F) {
	f.Add("attempt=2; max=3")
	f.Fuzz(func(t *testing.T, value string) {
		for _, h := range all {
			In(http.Header{h.Name: {value}, "X-Slack-Retry-Num": {value, value}})
		}
		if Above(value, 0) && strings.Trim(value, "0123456789") != "" {
			t.Errorf("%q is a count", value)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	h := http.Header{"Content-Type": {"application/json"}, "X-Envoy-Attempt-Count": {"1"}, amzSDKRequest: {"attempt=1; max=3"}}
	if n := testing.AllocsPerRun(100, func() { In(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkIn(b *testing.B) {
	h := make(http.Header)
	for i := range 15 {
		h.Set("X-Some-Header-"+strconv.Itoa(i), "value")
	}
	for b.Loop() {
		In(h)
	}
}
