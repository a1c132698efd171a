package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
)

// progressEvery is the least time between two lines of progress.
const progressEvery = time.Second

// progress shows on standard error how far a long command has come, if standard error is a
// terminal or --progress is given. The zero value shows nothing.
type progress struct {
	wanted bool
	w      io.Writer
	line   bool // overwrite a single line, as on a terminal

	what        string
	began, last time.Time
	shown       bool
}

// newProgress registers --progress.
func newProgress(env environment, fs *pflag.FlagSet) *progress {
	p := &progress{w: env.screen, line: env.terminal}
	fs.BoolVar(&p.wanted, "progress", env.terminal, "show the progress of a scan (on a terminal also without this flag)")
	fs.Lookup("progress").DefValue = "false"
	return p
}

// progress.start begins to count things. The parameter what is their name, such as "items
// seen".
func (p *progress) start(what string) {
	p.what, p.began = what, time.Now()
	p.last = p.began
}

// progress.at shows the number n of things counted so far, and the rate, but at most once
// a second. total is the approximate number of all things, or 0 if unknown.
func (p *progress) at(n, total int64) {
	now := time.Now()
	if !p.wanted || now.Sub(p.last) < progressEvery {
		return
	}
	p.last = now
	of := ""
	if total > 0 {
		of = fmt.Sprintf(" of about %d", max(n, total))
	}
	text := fmt.Sprintf("%d%s %s, %.0f/s", n, of, p.what, float64(n)/now.Sub(p.began).Seconds())
	if !p.line {
		fmt.Fprintln(p.w, text)
		return
	}
	p.shown = true
	fmt.Fprintf(p.w, "\r%s\x1b[K", text)
}

// progress.end removes the progress line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
