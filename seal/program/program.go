package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/samekey/samekey/seal"
)

// question is a call of a provider, as JSON.
type question struct {
	Call    string `json:"call"` // generate or open
	KeyID   string `json:"key_id,omitempty"`
	Wrapped []byte `json:"wrapped,omitempty"`
}

const (
	generate = "generate"
	open     = "open"
)

// answer is the result of the call, as JSON.
type answer struct {
	KeyID   string `json:"key_id,omitempty"`
	Plain   []byte `json:"plain,omitempty"`
	Wrapped []byte `json:"wrapped,omitempty"`
	Error   string `json:"error,omitempty"`
	Invalid bool   `json:"invalid,omitempty"` // the error matches seal.ErrInvalid
}

// Provider is a [seal.Provider] whose data keys come from another program. It is safe
// for concurrent use.
type Provider struct {
	argv []string
	env  []string
}

var _ seal.Provider = (*Provider)(nil)

// New returns a provider that runs a program for each call. The list argv is the program with its
// arguments. The program gets this process's environment variables, and the further variables in
// env, as NAME=VALUE. New doesn't run the program, but fails if the program can't be found.
func New(argv []string, env ...string) (*Provider, error) {
	if len(argv) == 0 {
		return nil, errors.New("program: New: no program is named")
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("program: New: %w", err)
	}
	return &Provider{argv: append([]string{path}, argv[1:]...), env: append(os.Environ(), env...)}, nil
}

// Generate implements [seal.Provider] by one run of the program.
func (p *Provider) Generate(ctx context.Context) (seal.DataKey, error) {
	a, err := p.ask(ctx, question{Call: generate})
	return seal.DataKey{KeyID: a.KeyID, Plain: a.Plain, Wrapped: a.Wrapped}, err
}

// Open implements [seal.Provider] by one run of the program.
func (p *Provider) Open(ctx context.Context, keyID string, wrapped []byte) ([]byte, error) {
	a, err := p.ask(ctx, question{Call: open, KeyID: keyID, Wrapped: wrapped})
	return a.Plain, err
}

const (
	mostAnswer = 64 << 10
	mostWords  = 1 << 10         // bytes of the program's standard error that an error quotes
	endTime    = 2 * time.Second // how long to wait for the end of the output after a program has exited or its context has ended
)

func (p *Provider) ask(ctx context.Context, q question) (a answer, err error) {
	in, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = p.env, bytes.NewReader(in), endTime
	cmd.Stdout, cmd.Stderr = &atMost{&out, mostAnswer}, &atMost{&said, mostWords}
	ran := cmd.Run()
	defer clear(out.Bytes())
	if err := ctx.Err(); err != nil {
		return a, fmt.Errorf("program: %s: %w", p.argv[0], err)
	}
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return answer{}, fmt.Errorf("program: %s gave no answer: %w", p.argv[0], errors.Join(ran, words(&said)))
	}
	switch {
	case a.Invalid:
		return answer{}, fmt.Errorf("program: %w: %s", seal.ErrInvalid, a.Error)
	case a.Error != "":
		return answer{}, fmt.Errorf("program: %s", a.Error)
	case ran != nil:
		return answer{}, fmt.Errorf("program: %s: %w", p.argv[0], errors.Join(ran, words(&said)))
	}
	return a, nil
}

// words returns the text of the program's standard error as an error, or nil if there
// is no text.
func words(said *bytes.Buffer) error {
	if text := strings.TrimSpace(said.String()); text != "" {
		return errors.New(text)
	}
	return nil
}

// atMost is a writer that keeps the first bytes, and drops all others.
type atMost struct {
	to   *bytes.Buffer
	most int
}

func (w *atMost) Write(b []byte) (int, error) {
	w.to.Write(b[:min(len(b), max(0, w.most-w.to.Len()))])
	return len(b), nil
}

// Serve reads a question from in, calls provider, and writes the answer to out. If the
// provider fails, Serve writes the provider's error as the answer. Serve returns an
// error only if it can't read the question or can't write the answer. A program that
// has no provider calls [Refuse] with the reason.
func Serve(ctx context.Context, provider seal.Provider, in io.Reader, out io.Writer) error {
	var q question
	if err := json.NewDecoder(io.LimitReader(in, mostAnswer)).Decode(&q); err != nil {
		return fmt.Errorf("program: the question: %w", err)
	}
	var a answer
	var err error
	switch q.Call {
	case generate:
		var k seal.DataKey
		k, err = provider.Generate(ctx)
		a = answer{KeyID: k.KeyID, Plain: k.Plain, Wrapped: k.Wrapped}
	case open:
		a.Plain, err = provider.Open(ctx, q.KeyID, q.Wrapped)
	default:
		err = fmt.Errorf("a call %q is not known to this program", q.Call)
	}
	if err != nil {
		a = answer{Error: err.Error(), Invalid: errors.Is(err, seal.ErrInvalid)}
	}
	return write(out, a)
}

// Refuse writes the error why as the answer, for a program that has no provider.
func Refuse(out io.Writer, why error) error { return write(out, answer{Error: why.Error()}) }

func write(out io.Writer, a answer) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	defer clear(raw)
	_, err = out.Write(raw)
	return err
}
