package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
)

// Passes is proof/bench/passes.json: what a pass over a whole table takes.
type Passes struct {
	Run    Run    `json:"run"`
	Passes []Pass `json:"passes"`
}

// Pass is one over a table of finished records.
type Pass struct {
	Does    string  `json:"does"` // the sweep, or a command of samekey
	Records int     `json:"records"`
	Pages   int     `json:"pages"`
	Read    float64 `json:"read_units"` // of the pages
	// Pace is the pages a second of a pass that nobody hurries.
	Pace float64 `json:"pages_a_second"`
	// Seconds is how long the pass takes without its pace.
	Seconds float64 `json:"seconds"`
}

// sweeps is the pass of the worker.
const sweeps = "the worker's sweep"

// passCommands are the commands that read the whole table. LOCK is a lock file.
var passCommands = [][]string{{"list", "--scan"}, {"list", "--stats", "--scan"}, {"vet", "--open", "--lock", "LOCK"}}

// measurePasses fills a table, and at each number makes each pass.
func measurePasses(ctx context.Context, db *dynamotest.DB, root string, numbers []int) (all []Pass, err error) {
	folder, err := os.MkdirTemp("", "samekey-passes-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	lock := filepath.Join(folder, "lock.json")
	if err := os.WriteFile(lock, []byte(`{"version": 1, "packages": {"shop": {"order": [{"phase": "booked", "kind": "Atomic"}]}}}`), 0o600); err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "samekey")
	build := exec.CommandContext(ctx, "go", "build", "-C", "cmd/samekey", "-o", program, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build ./cmd/samekey: %w: %s", err, out)
	}
	err = growPassed(ctx, db, numbers, func(ctx context.Context, b *bed, n int) error {
		swept, err := sweepPass(ctx, b, db, n)
		if err != nil {
			return err
		}
		all = append(all, swept)
		for _, words := range passCommands {
			p, err := commandPass(ctx, b, db, program, lock, words, n)
			if err != nil {
				return err
			}
			all = append(all, p)
		}
		return nil
	})
	return all, err
}

// growPassed is growTable with one more record, which is left open: what finds nothing asks
// whether the table is one of records.
func growPassed(ctx context.Context, db *dynamotest.DB, numbers []int, at func(ctx context.Context, b *bed, n int) error) error {
	left := false
	return growTable(ctx, db, numbers, func(ctx context.Context, b *bed, n int) error {
		if !left {
			left = true
			failed := errors.New("failed")
			_, err := b.engine().Do(ctx, post("left", "{}"), func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Atomic(ctx, "booked", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
				return idem.Response{}, errors.Join(failed, err)
			})
			if !errors.Is(err, failed) {
				return fmt.Errorf("an open record: %w", err)
			}
		}
		return at(ctx, b, n)
	})
}

// longRun has DynamoDB Local's Java compile for speed, and gives it room. Tests have it compile
// for a quick start, and the writes of a million records then take nearly twice the
// processor's time.
func longRun() error {
	const options = "_JAVA_OPTIONS"
	return os.Setenv(options, strings.TrimSpace(os.Getenv(options)+" -XX:TieredStopAtLevel=4 -Xmx3g"))
}

// sweepPass runs a sweep over n records.
func sweepPass(ctx context.Context, b *bed, db *dynamotest.DB, n int) (Pass, error) {
	const pace = 10 // stream.SweepOptions.PagesPerSecond, by default
	return passed(sweeps, n, pace, db, func(endpoint string) error {
		client := db.Client(dynamo.Tune, func(o *dynamodb.Options) { o.BaseEndpoint = &endpoint })
		store, err := dynamo.New(client, b.table)
		if err != nil {
			return err
		}
		rep, err := stream.NewSweep(client, store, func(o *stream.SweepOptions) {
			o.Name, o.PagesPerSecond, o.Logger = strconv.Itoa(n), 1e6, quiet
		}).Run(ctx)
		if err == nil && (rep.Scanned < n || !rep.Complete) {
			err = fmt.Errorf("%d of %d records scanned, complete: %t", rep.Scanned, n, rep.Complete)
		}
		return err
	})
}

// commandPass runs a command over n records.
func commandPass(ctx context.Context, b *bed, db *dynamotest.DB, program, lock string, words []string, n int) (Pass, error) {
	help, err := exec.CommandContext(ctx, program, words[0], "--help").Output()
	if err != nil {
		return Pass{}, err
	}
	said := regexp.MustCompile(`--pages .*\(default ([\d.]+)\)`).FindSubmatch(help)
	if said == nil {
		return Pass{}, fmt.Errorf("samekey %s --help doesn't say its pages a second", words[0])
	}
	pace, err := strconv.ParseFloat(string(said[1]), 64)
	if err != nil {
		return Pass{}, err
	}
	does := "`samekey " + strings.TrimSuffix(strings.Join(words, " "), " --lock LOCK") + "`"
	return passed(does, n, pace, db, func(endpoint string) error {
		args := append(slices.Clone(words), "--table", b.table, "--pages", "1000000", "--json")
		for i, w := range args {
			args[i] = strings.Replace(w, "LOCK", lock, 1)
		}
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), append(db.Env(), "AWS_REGION=us-east-1", "AWS_ENDPOINT_URL_DYNAMODB="+endpoint)...) //nolint:contextcheck // Env asks nobody
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", does, err, out)
		}
		return nil
	})
}

// passed makes a pass over n records.
func passed(does string, n int, pace float64, db *dynamotest.DB, run func(endpoint string) error) (Pass, error) {
	gate := &gate{to: db.Endpoint, pages: make(map[string]float64)}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the pass
	if err != nil {
		return Pass{}, err
	}
	server := &http.Server{Handler: gate, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(ln) }()
	begun := time.Now()
	err = run("http://" + ln.Addr().String())
	took := time.Since(begun)
	if err := errors.Join(err, server.Close()); err != nil {
		return Pass{}, err
	}
	p := Pass{Does: does, Records: n, Pages: len(gate.pages), Pace: pace, Seconds: math.Round(took.Seconds()*1e3) / 1e3}
	for _, units := range gate.pages {
		p.Read += units
	}
	return p, nil
}

// gate passes requests on to DynamoDB Local, and notes the read units of each page, once: a
// client repeats a request that a busy machine answers late.
type gate struct {
	to    string
	mu    sync.Mutex
	pages map[string]float64 // by the request
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := g.pass(w, r); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

var capacityUnits = regexp.MustCompile(`"CapacityUnits":([\d.]+)`)

func (g *gate) pass(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if op == "Scan" {
		body = append([]byte(`{"ReturnConsumedCapacity":"TOTAL",`), bytes.TrimPrefix(body, []byte("{"))...)
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, g.to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	again.Header = r.Header.Clone()
	got, err := http.DefaultClient.Do(again) //nolint:gosec // to DynamoDB Local
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	answer, err := io.ReadAll(got.Body)
	if err != nil {
		return err
	}
	if op == "Scan" {
		said := capacityUnits.FindSubmatch(answer)
		if said == nil {
			return errors.New("a page doesn't say its read units")
		}
		units, err := strconv.ParseFloat(string(said[1]), 64)
		if err != nil {
			return err
		}
		g.mu.Lock()
		g.pages[string(body)] = units
		g.mu.Unlock()
	}
	maps.Copy(w.Header(), got.Header)
	w.WriteHeader(got.StatusCode)
	_, err = w.Write(answer)
	return err
}

// table has the passes as they were measured, and over ten million records as computed from
// the largest one.
func (p *Passes) table(prices Prices) table {
	const many = 10_000_000
	t := table{
		title: "A pass over the whole table",
		text: fmt.Sprintf(`The worker's sweep and three commands read the whole table, here of finished records of 620 bytes. The figures are of %s (%s), with a load of
%.1f before and %.1f after it. Pages, units and dollars are counted, seconds are measured on DynamoDB Local, without a pace. *Minutes* are those of scanning
at the default pace, in pages a second: they assume that DynamoDB answers as fast. A page takes up to 128 read units, so 10 pages a second
take 1,280 units a second. The rows of %s records are computed from those above them. A pass leaves to TTL what TTL deletes, and
writes nothing but its place (%s).`, p.Run.Date, "`"+p.Run.Command+"`", p.Run.Load[0], p.Run.Load[1], thousands(many), "`TestPassLeavesToTTLWhatTTLDeletes`"),
		head: []string{"pass", "records", "pages", "read units", "dollars", "minutes", "pages a second", "seconds without a pace"},
	}
	var order []string
	last := make(map[string]Pass)
	for _, one := range p.Passes {
		if _, ok := last[one.Does]; !ok {
			order = append(order, one.Does)
		}
		last[one.Does] = one
	}
	for _, does := range order {
		all := slices.DeleteFunc(slices.Clone(p.Passes), func(one Pass) bool { return one.Does != does })
		for _, one := range append(all, last[does].grown(many)) {
			name := thousands(one.Records)
			if one.Records == many {
				name += ", computed"
			}
			t.rows = append(t.rows, []string{
				does, name, thousands(one.Pages), thousands(int(math.Round(one.Read))), hundredths(one.Read / 1e6 * prices.Read),
				hundredths(float64(one.Pages) / one.Pace / 60), number(one.Pace), short4(one.Seconds),
			})
		}
	}
	return t
}

// hundredths is v to a hundredth, or to a ten-thousandth below.
func hundredths(v float64) string {
	switch {
	case v < 0.00005:
		return "0"
	case v < 0.01:
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// grown is p over so many records.
func (p Pass) grown(records int) Pass {
	by := float64(records) / float64(p.Records)
	p.Records, p.Pages, p.Read, p.Seconds = records, int(math.Ceil(float64(p.Pages)*by)), p.Read*by, math.Round(p.Seconds*by)
	return p
}
