package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/pagetest"
)

// Peers are peers.json: Samekey beside what people use otherwise.
type Peers struct {
	Peers  []Peer  `json:"peers"`
	Breaks []Break `json:"breaks"`
}

// Peer is a library with the SDK below it.
type Peer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SDK     string `json:"sdk"`
	Runtime string `json:"runtime"`
}

// Break is a scenario that breaks promises, played with one library.
type Break struct {
	Scenario string `json:"scenario"`
	Who      string `json:"who"`
	// Answers are who asked and what each got, in order.
	Answers [][2]string `json:"answers"`
	// Runs is how often the handlers ran.
	Runs int `json:"runs"`
}

// scenario is a Break that everybody plays.
type scenario struct {
	name string // as the peers know it
	does string
	// kept judges what was seen: empty, or the broken promise.
	kept func(answers []string, runs int) string
}

const (
	secondRun   = "the work is done twice"
	defaultBody = "Samekey as it comes (`MaxBody` of 256 KB)"

	nothing = "the work is done once, but the retry doesn't get its answer"
)

var scenarios = []scenario{
	{"late finisher", "An attempt loses its lease, a second attempt takes over and answers. Then the first attempt finishes.", func(a []string, runs int) string {
		switch {
		case runs > 2:
			return "the work is done again"
		case a[2] != a[0]:
			return "the late answer has replaced the answer that the second client has"
		}
		return ""
	}},
	{"late failure", "The same, and the first attempt fails instead.", func(a []string, runs int) string {
		switch {
		case runs > 2:
			return "the late failure has deleted the answer: the work is done again"
		case a[2] != a[0]:
			return nothing
		}
		return ""
	}},
	{"nested", "A handler calls a second operation on the same table. Both are retried with their key.", func(a []string, runs int) string {
		switch {
		case a[2] != "201, the inner answer":
			return "the retry of the inner operation gets another answer"
		case a[1] != a[0]:
			return nothing
		case runs > 2:
			return secondRun
		}
		return ""
	}},
	{"large", "The answer has 401 KB, more than an item of DynamoDB may have.", func(a []string, runs int) string {
		switch {
		case runs > 1:
			return secondRun
		case a[1] != a[0] || a[2] != a[0]:
			return nothing
		}
		return ""
	}},
	{"500", "The handler catches its provider's failure and returns a 500. The client retries when the provider is up again.", func(a []string, _ int) string {
		if a[1] != "201, paid" {
			return "the 500 is replayed: nobody can pay with this key"
		}
		return ""
	}},
}

// broken is the promise that was broken; empty if all were kept.
func (b *Break) broken() string {
	answers := make([]string, len(b.Answers))
	for i, a := range b.Answers {
		answers[i] = a[1]
	}
	return playOf(b.Scenario).kept(answers, b.Runs)
}

func playOf(name string) scenario {
	return scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })]
}

// ourBreaks plays every scenario with Samekey.
func ourBreaks(ctx context.Context, db *dynamotest.DB) (all []Break, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for _, play := range []struct {
		name, who string
		run       func(context.Context, *stage) error
	}{
		{"late finisher", "Samekey", func(ctx context.Context, s *stage) error { return s.late(ctx, false) }},
		{"late failure", "Samekey", func(ctx context.Context, s *stage) error { return s.late(ctx, true) }},
		{"nested", "Samekey", func(ctx context.Context, s *stage) error { return s.nested(ctx) }},
		{"large", "Samekey with `MaxBody` of 1 MB", func(ctx context.Context, s *stage) error { return s.large(ctx, 1<<20) }},
		{"large", defaultBody, func(ctx context.Context, s *stage) error { return s.large(ctx, 0) }},
		{"500", "Samekey", func(ctx context.Context, s *stage) error { return s.swallowed(ctx) }},
	} {
		b, err := newBed(ctx, db)
		if err != nil {
			return nil, err
		}
		s := &stage{bed: b}
		if err := play.run(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", play.name, err)
		}
		all = append(all, Break{play.name, play.who, s.answers, s.runs})
	}
	return all, nil
}

// stage is where Samekey plays a scenario. One attempt runs at a time.
type stage struct {
	*bed
	answers [][2]string
	runs    int
}

// at is an engine whose clock shows a time after the bed's. Three hours later a lease is over:
// it ends with the context, in an hour.
func (s *stage) at(after time.Duration, opts ...func(*idem.Options)) *idem.Engine {
	now := s.now.Add(after)
	return s.engine(append(opts, func(o *idem.Options) { o.Now = func() time.Time { return now } })...)
}

// asks sends a request and notes what its client gets.
func (s *stage) asks(ctx context.Context, who string, e *idem.Engine, req idem.Request, fn handler) error {
	res, err := e.Serve(ctx, req, fn)
	s.answers = append(s.answers, [2]string{who, got(res)})
	return err
}

func got(res idem.Result) string {
	text := string(res.Body)
	if res.Status >= 400 && res.Header.Get("Content-Type") != "application/json" { // a refusal of the engine's own
		text = http.StatusText(res.Status)
	}
	return fmt.Sprintf("%d, %.30s", res.Status, text)
}

// keyed is a request with its key in the header.
func keyed(path string) idem.Request {
	req := post("", `{"amount":2000}`)
	req.Path, req.Route = path, "POST "+path
	req.Header = http.Header{idem.KeyHeader: {"8e03978e-40d5-43e8-bc93-6894a57f9324"}}
	return req
}

// says is a handler that answers.
func (s *stage) says(status int, body string) handler {
	return func(context.Context) (idem.Response, error) {
		s.runs++
		re := created(body)
		re.Status = status
		return re, nil
	}
}

func (s *stage) late(ctx context.Context, fails bool) error {
	var late idem.Result
	var second error
	late, err := s.at(0).Serve(ctx, keyed("/orders"), func(context.Context) (idem.Response, error) {
		s.runs++
		second = s.asks(ctx, "the second", s.at(3*time.Hour), keyed("/orders"), s.says(http.StatusCreated, "by the second"))
		if fails {
			return idem.Response{}, errors.New("failed late")
		}
		return created("by the first"), nil
	})
	s.answers = append(s.answers, [2]string{"the first, late", got(late)})
	return errors.Join(err, second, s.asks(ctx, "a retry", s.at(3*time.Hour), keyed("/orders"), s.says(http.StatusCreated, "by the retry")))
}

func (s *stage) nested(ctx context.Context) error {
	// The namespace separates operations, as the peers' names of functions do.
	e, receipts := s.at(0), s.at(0, func(o *idem.Options) { o.Namespace = "receipts" })
	inside := s.says(http.StatusCreated, "the inner answer")
	outside := func(ctx context.Context) (idem.Response, error) {
		s.runs++
		res, err := receipts.Serve(ctx, keyed("/receipts"), inside)
		if err == nil && got(res) != "201, the inner answer" {
			err = fmt.Errorf("the inner operation answers %s", got(res))
		}
		if err != nil {
			return idem.Response{}, err
		}
		return created("the outer answer"), nil
	}
	return errors.Join(
		s.asks(ctx, "the outer call", e, keyed("/orders"), outside),
		s.asks(ctx, "a retry of the outer", e, keyed("/orders"), outside),
		s.asks(ctx, "a retry of the inner", receipts, keyed("/receipts"), inside))
}

func (s *stage) large(ctx context.Context, limit int) error {
	limited := func(o *idem.Options) { o.MaxBody = limit }
	h := s.says(http.StatusCreated, letters(401<<10))
	return errors.Join(
		s.asks(ctx, "first", s.at(0, limited), keyed("/orders"), h),
		s.asks(ctx, "a retry at once", s.at(0, limited), keyed("/orders"), h),
		s.asks(ctx, "a retry after the lease", s.at(3*time.Hour, limited), keyed("/orders"), h))
}

func (s *stage) swallowed(ctx context.Context) error {
	return errors.Join(
		s.asks(ctx, "first", s.at(0), keyed("/orders"), s.says(http.StatusInternalServerError, "the provider is down")),
		s.asks(ctx, "a retry, the provider is up", s.at(0), keyed("/orders"), s.says(http.StatusCreated, "paid")))
}

// letters is a text of n bytes that compresses by a quarter only, with an x first.
func letters(n int) string {
	b := []byte(noise(n))
	for i := range b {
		b[i] = '0' + b[i]%64
	}
	return "x" + string(b[1:])
}

// Samekey keeps its promises in every scenario, and the recorded results say so.
func TestBreaksAreAsRecorded(t *testing.T) {
	t.Parallel()
	var recorded Peers
	read(t, "peers.json", &recorded)
	ours, err := ourBreaks(t.Context(), dynamotest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	was := slices.DeleteFunc(recorded.Breaks, func(b Break) bool { return !strings.HasPrefix(b.Who, "Samekey") })
	if diff := cmp.Diff(was, ours); diff != "" {
		t.Errorf("peers.json (-recorded +now), make bench-peers writes it:\n%s", diff)
	}
	for _, b := range ours {
		want := ""
		if b.Who == defaultBody {
			want = nothing
		}
		if got := b.broken(); got != want {
			t.Errorf("%s, %s: got %q, want %q: %+v", b.Who, b.Scenario, got, want, b)
		}
	}
}

// breaks is the table of README.md.
func breaks(t *testing.T) string {
	t.Helper()
	var p Peers
	read(t, "peers.json", &p)
	tb := pagetest.Table{Head: []string{"scenario", "library", "clients get", "handlers ran", "broken"}}
	for _, s := range scenarios {
		does := s.does
		for _, b := range p.Breaks {
			if b.Scenario != s.name {
				continue
			}
			var answers []string
			for _, a := range b.Answers {
				if status, body, ok := strings.Cut(a[1], ", "); ok && strings.HasPrefix(body, "x") {
					a[1] = status // of a large answer
				}
				answers = append(answers, a[0]+": "+a[1])
			}
			broken := b.broken()
			if broken == "" {
				broken = "nothing"
			}
			tb.Add(does, b.Who, strings.Join(answers, "; "), strconv.Itoa(b.Runs), broken)
			does = ""
		}
	}
	return tb.String()
}

// TestPeers has the peers, which peers.sh installs in the folder PEERS, play all scenarios, and writes
// peers.json.
func TestPeers(t *testing.T) {
	installed := os.Getenv("PEERS")
	if installed == "" {
		t.Skip("PEERS is not set: make bench-peers")
	}
	db := dynamotest.Start(t)
	var all Peers
	var err error
	if all.Breaks, err = ourBreaks(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	python, modules := filepath.Join(installed, "peers-python", "bin", "python"), filepath.Join(installed, "peers-node", "node_modules")
	for name, args := range map[string][]string{
		"Powertools for AWS Lambda (Python)":     {python, "peers/peer.py"},
		"Powertools for AWS Lambda (TypeScript)": {"node", "--no-warnings", "peers/peer.cjs"},
	} {
		peer, seen := playedBy(t, db, name, args, modules)
		all.Peers, all.Breaks = append(all.Peers, peer), append(all.Breaks, seen...)
	}
	slices.SortFunc(all.Peers, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(all.Breaks, func(a, b Break) int { return strings.Compare(a.Who, b.Who) })
	write(t, "peers.json", all)
}

// playedBy starts a peer with a table of its own, and has it play all scenarios.
func playedBy(t *testing.T, db *dynamotest.DB, name string, args []string, modules string) (peer Peer, all []Break) {
	t.Helper()
	b, err := newBed(t.Context(), db) // its table of items has the peers' key, too
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "NODE_PATH=" + modules, "NO_PROXY=*", "PYTHONDONTWRITEBYTECODE=1",
		"AWS_ENDPOINT_URL_DYNAMODB=" + db.Endpoint, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_LAMBDA_FUNCTION_NAME=rides", "PEER_TABLE=" + b.app,
	}, db.Env()...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	to, from := json.NewEncoder(in), json.NewDecoder(out)
	ask := func(what string, into any) {
		t.Helper()
		if err := errors.Join(to.Encode(map[string]string{"do": what}), from.Decode(into)); err != nil {
			t.Fatalf("%s: %s: %v", name, what, err)
		}
	}
	peer.Name = name
	ask("hello", &peer)
	for _, s := range scenarios {
		var seen struct {
			Break
			Error string
		}
		if ask(s.name, &seen); seen.Error != "" {
			t.Errorf("%s: %s: got %s", name, s.name, seen.Error)
		}
		seen.Scenario, seen.Who = s.name, name
		all = append(all, seen.Break)
	}
	_ = in.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return peer, all
}
