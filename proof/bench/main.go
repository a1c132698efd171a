// Command bench measures Samekey:
//
//	go run -C proof ./bench               # all: proof/bench/results.json and proof/bench/README.md (Java)
//	go run -C proof ./bench -only paths   # calls, units, bytes and dollars; the timings stay as they are
//	go run -C proof ./bench -only races   # beside the peers, which make bench-peers installs
//	go run -C proof ./bench -page         # proof/bench/README.md from proof/bench/results.json, without a run
//
// It prints the figures as a table. Calls, units, bytes and dollars are the same in every run;
// timings are taken in turns with their floor, and the file says under which load.
// make bench also builds the bootstraps whose sizes are in the table.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func main() {
	_ = os.Unsetenv("AWS_REGION") // a record tells its Region, and here its bytes count; fails never
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// sections are the parts of the results by their files, in the order in which they are
// measured.
var sections = []struct {
	file  string
	names []string
}{
	{"results.json", []string{"paths", "inline", "bodies", "records", "library", "sdk", "latency", "streams", "recovery", "start", "sizes"}},
	{"peers.json", []string{"breaks", "races"}},
	{"growth.json", []string{"growth-counts", "growth-callers", "growth"}},
	{"passes.json", []string{"passes"}},
}

// bench is one run.
type bench struct {
	root, dist, bare string
	command          string // as it was typed
	samples          map[string]int
	grow             scales
	db               *dynamotest.DB
	log              io.Writer
}

// long are the samples of a run whose figures go into the page; short is a try.
func long() map[string]int {
	return map[string]int{"library": 2000, "sdk": 5000, "latency": 3000, "streams": 50, "start": 100, "races": 1000, "recovery": 3, "growth": 1, "passes": 1}
}

func short() map[string]int {
	return map[string]int{"library": 20, "sdk": 20, "latency": 20, "streams": 1, "start": 1, "races": 5, "recovery": 1, "growth": 1, "passes": 1}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := bench{log: stderr, samples: long()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&b.root, "root", "..", "the repository")
	flags.StringVar(&b.dist, "dist", "dist", "the folder with bootstraps for arm64")
	flags.StringVar(&b.bare, "bare", ".bin/bench/bare", "the bare handler's bootstrap for arm64")
	only := flags.String("only", strings.Join(sections[0].names, ","), "the parts to measure; the others stay as they are")
	page := flags.Bool("page", false, "only write the page")
	scale := flags.Float64("scale", 1, "the share of the samples to take")
	records := flags.Int("records", 100_000, "growth and passes: the most records in a table, up to 1,000,000")
	try := flags.Bool("short", os.Getenv("BENCH") == "short", "few samples, print only")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b.grow = longScales(*records)
	if *try {
		b.samples, b.grow = short(), shortScales()
	}
	for name, n := range b.samples {
		b.samples[name] = max(1, int(float64(n)**scale))
	}
	b.command = strings.Join(append([]string{"go run -C proof ./bench"}, args...), " ")
	folder := filepath.Join(b.root, "proof", "bench")
	r, err := load(folder)
	if err != nil {
		return err
	}
	if !*page {
		if err := b.measure(ctx, r, strings.Split(*only, ",")); err != nil {
			return err
		}
		r.print(stdout)
		if *try {
			return nil
		}
		if err := r.save(folder); err != nil {
			return err
		}
	}
	if err := r.Growth.savePlots(folder); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "README.md"), []byte(r.page()), 0o644) //nolint:gosec // a page, for everybody
}

// measure measures the named parts.
func (b *bench) measure(ctx context.Context, r *Results, only []string) (err error) {
	var all []string
	for _, file := range sections {
		all = append(all, file.names...)
	}
	for _, name := range only {
		if !slices.Contains(all, name) {
			return fmt.Errorf("no part is called %q: the parts are %s", name, strings.Join(all, ", "))
		}
	}
	if r.Prices, err = loadPrices(filepath.Join(b.root, "proof", "bench", "prices.json")); err != nil {
		return err
	}
	if b.db == nil {
		if slices.Contains(only, "passes") {
			if err := longRun(); err != nil {
				return err
			}
		}
		if b.db, err = dynamotest.Find(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.db.Close()) }()
	}
	for _, file := range sections {
		before, timed := loadAverage(), false
		for _, name := range file.names {
			if !slices.Contains(only, name) {
				continue
			}
			begun := time.Now()
			timed = timed || b.samples[name] > 0
			if err := b.section(ctx, r, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintf(b.log, "bench: %s took %v\n", name, time.Since(begun).Round(100*time.Millisecond))
		}
		if !timed {
			continue
		}
		if *r.run(file.file), err = b.circumstances(before); err != nil {
			return err
		}
	}
	return nil
}

// circumstances are those of the run that is over; before is its load at the beginning.
func (b *bench) circumstances(before float64) (Run, error) {
	yard, err := interleaved(200, 1, nil, yardstick)
	if err != nil {
		return Run{}, err
	}
	return Run{
		Command: b.command, Date: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: processor(), CPUs: runtime.NumCPU(), Load: [2]float64{before, loadAverage()}, Yardstick: yard[0].P50,
	}, nil
}

func (b *bench) section(ctx context.Context, r *Results, name string) (err error) {
	n := b.samples[name]
	switch name {
	case "paths":
		r.Paths, err = measurePaths(ctx, b.db, r.Prices)
	case "inline":
		r.Inline, err = measureInline(ctx, b.db, r.Prices)
	case "bodies":
		r.Bodies, err = measureBodies(100 * time.Millisecond)
	case "records":
		r.Records, err = measureRecords(ctx, b.db)
	case "library":
		r.Library, err = measureLibrary(ctx, b.db, n)
	case "sdk":
		r.SDK, err = measureSDK(ctx, b.db, n)
	case "latency":
		r.Latency, err = measureLatency(ctx, b.db, n)
	case "streams":
		r.Streams, err = measureStreams(ctx, b.db, n)
	case "start":
		r.Start, err = measureStart(ctx, b.root, n)
	case "recovery":
		r.Recovery, err = measureRecovery(ctx, b.db, n)
	case "growth-counts":
		charts, failed := countGrowth(ctx, b.db, r.Prices, b.grow)
		r.Growth.set(charts)
		err = failed
	case "growth-callers":
		charts, failed := growCallers(ctx, b.db, b.grow.callers)
		r.Growth.set(charts)
		return failed
	case "growth":
		charts, failed := timeGrowth(ctx, b.db, b.grow)
		r.Growth.set(charts)
		err = failed
	case "passes":
		r.Passes.Passes, err = measurePasses(ctx, b.db, b.root, b.grow.records)
	case "breaks", "races":
		err = b.peers(ctx, r, name, n)
	case "sizes":
		r.Sizes, err = measureSizes(filepath.Join(b.root, b.dist), filepath.Join(b.root, b.bare))
	}
	return err
}

// peers measures a part with the peers' programs.
func (b *bench) peers(ctx context.Context, r *Results, name string, n int) error {
	return withPeers(ctx, b.db, b.root, func(ctx context.Context, peers []*peer) (err error) {
		r.Peers.Peers = nil
		for _, p := range peers {
			r.Peers.Peers = append(r.Peers.Peers, p.Peer)
		}
		if name == "breaks" {
			r.Peers.Breaks, err = measureBreaks(ctx, b.db, peers)
		} else {
			r.Peers.Races, err = measureRaces(ctx, b.db, peers, n)
		}
		return err
	})
}

// loadAverage is the machine's over a minute; 0 where it is unknown.
func loadAverage() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// processor is the machine's, as it names itself.
func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if name, model, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return ""
}
