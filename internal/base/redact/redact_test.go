package redact_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/base/redact"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	post := func(u string) error { return &url.Error{Op: "Post", URL: u, Err: io.EOF} }
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"short":             {errors.New("down"), "down"},
		"a query":           {fmt.Errorf("pay: %w", post("https://bank.example/pay?token=sk_1")), `pay: Post "https://bank.example/pay?…": EOF`},
		"two queries":       {errors.Join(post("https://a.example?k=1"), fmt.Errorf("b: %w", post("https://b.example?k=2"))), "Post \"https://a.example?…\": EOF\nb: Post \"https://b.example?…\": EOF"},
		"none":              {nil, ""},
		"no query":          {post("https://bank.example/pay"), `Post "https://bank.example/pay": EOF`},
		"too long":          {errors.New(strings.Repeat("x", 300)), strings.Repeat("x", 256)},
		"cut within a rune": {errors.New(strings.Repeat("x", 255) + "é"), strings.Repeat("x", 255)},
		"no UTF-8":          {errors.New("a\xffb"), "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := redact.Error(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
