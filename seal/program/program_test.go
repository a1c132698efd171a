package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/samekey/samekey/seal"
	"github.com/samekey/samekey/seal/program"
)

// This test is the program, too.
const envPlay = "PROGRAM_TEST_PLAY"

func TestMain(m *testing.M) {
	play := os.Getenv(envPlay)
	if play == "" {
		os.Exit(m.Run())
	}
	os.Exit(plays(play))
}

func plays(play string) int {
	switch play {
	case "dies":
		fmt.Fprintln(os.Stderr, "no region")
		return 3
	case "babbles":
		fmt.Println("hello")
		return 0
	case "refuses":
		_ = program.Refuse(os.Stdout, errors.New("SAMEKEY_KMS_KEYS is not set"))
		return 0
	case "fails late":
		fmt.Print("{}")
		return 3
	case "is long":
		fmt.Print("{}", strings.Repeat(" ", 64<<10-2), "x")
		fmt.Fprint(os.Stderr, strings.Repeat("x", 5000))
		return 0
	case "is long and dies":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 900), strings.Repeat("y", 5000))
		return 3
	case "hangs":
		select {}
	}
	if err := program.Serve(context.Background(), static(play), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// static is a provider whose current key has this name; it knows another one.
func static(name string) seal.Provider {
	p, err := seal.NewStatic(name, map[string][]byte{name: bytes.Repeat([]byte(name), 32)[:32], "older": make([]byte, 32)})
	if err != nil {
		panic(err)
	}
	return p
}

func playing(t *testing.T, play string) *program.Provider {
	t.Helper()
	p, err := program.New([]string{os.Args[0]}, envPlay+"="+play)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDataKeysOfAnotherProgram(t *testing.T) {
	t.Parallel()
	k, err := playing(t, "one").Generate(t.Context())
	if err != nil || k.KeyID != "one" || len(k.Plain) != 32 {
		t.Fatalf("Generate returned %q, %d bytes, %v", k.KeyID, len(k.Plain), err)
	}
	if plain, err := static("one").Open(t.Context(), k.KeyID, k.Wrapped); err != nil || !bytes.Equal(plain, k.Plain) {
		t.Errorf("the provider opens another key: %v", err)
	}
	if plain, err := playing(t, "one").Open(t.Context(), k.KeyID, k.Wrapped); err != nil || !bytes.Equal(plain, k.Plain) {
		t.Errorf("the program opens another key: %v", err)
	}
}

// An altered key is told from a key that can't be had, as by the provider itself.
func TestErrorsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	k, err := static("one").Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	altered := append([]byte{k.Wrapped[0] ^ 1}, k.Wrapped[1:]...)
	if plain, err := playing(t, "one").Open(t.Context(), "one", altered); plain != nil || !errors.Is(err, seal.ErrInvalid) {
		t.Errorf("of an altered key, Open returned %x, %v", plain, err)
	}
	for play, want := range map[string]string{
		"two":     `there is no key "one"`,
		"dies":    "no region",
		"babbles": "gave no answer",
		"refuses": "SAMEKEY_KMS_KEYS is not set",
	} {
		plain, err := playing(t, play).Open(t.Context(), "one", k.Wrapped)
		if plain != nil || err == nil || errors.Is(err, seal.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("if the program %s, Open returned %x, %v; want %q", play, plain, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := playing(t, "hangs").Generate(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("if the caller goes, Generate returned %v", err)
	}
}

func TestNewRefusesMistakes(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{nil, {"there-is-no-such-program"}} {
		if p, err := program.New(argv); p != nil || err == nil {
			t.Errorf("New(%q) returned %v, %v", argv, p, err)
		}
	}
	var out bytes.Buffer
	if err := program.Serve(t.Context(), static("one"), strings.NewReader("hello"), &out); err == nil || out.Len() > 0 {
		t.Errorf("to no question, Serve answered %q, %v", &out, err)
	}
	if err := program.Serve(t.Context(), static("one"), strings.NewReader(`{"call":"delete"}`), &out); err != nil || !strings.Contains(out.String(), "not known") {
		t.Errorf("to an unknown call, Serve answered %q, %v", &out, err)
	}
}
