package check

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Defaults of [Options].
const (
	DefaultPrefix   = "samekey-check-"
	DefaultRacers   = 5
	DefaultTimeout  = 30 * time.Second
	DefaultTotal    = 5 * time.Minute
	DefaultRequests = 80
	DefaultMaxBody  = 4 << 20
)

// Options are the settings of an examination.
type Options struct {
	Contract string        // the contract whose broken rules [Report.Faults] counts; "" is Default
	Prefix   string        // prefix of all keys; "" is DefaultPrefix
	Name     string        // name of the run, which follows Prefix in all keys; "" is a random name
	Racers   int           // number of simultaneous requests; 0 is DefaultRacers
	Timeout  time.Duration // time limit of a request; 0 is DefaultTimeout
	Total    time.Duration // time limit of the examination; 0 is DefaultTotal
	Requests int           // maximum number of requests; 0 is DefaultRequests
	MaxBody  int64         // maximum size of an answer, in bytes; 0 is DefaultMaxBody

	Transport http.RoundTripper // nil: a transport that reuses no connections
}

// Options.prepared validates o, and returns o with defaults for zero fields.
func (o Options) prepared() (Options, error) {
	setDefault(&o.Contract, Default)
	setDefault(&o.Prefix, DefaultPrefix)
	setDefault(&o.Racers, DefaultRacers)
	setDefault(&o.Timeout, DefaultTimeout)
	setDefault(&o.Total, DefaultTotal)
	setDefault(&o.Requests, DefaultRequests)
	setDefault(&o.MaxBody, DefaultMaxBody)
	setDefault(&o.Name, strings.ToLower(rand.Text()[:8]))
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		// If a reused connection breaks, net/http repeats a request that has a key. An
		// examination must count all requests, so it doesn't reuse connections.
		t.DisableKeepAlives, t.DisableCompression = true, true
		o.Transport = t
	}
	known := false
	for _, c := range Contracts() {
		known = known || c == o.Contract
	}
	switch {
	case !known:
		return o, fmt.Errorf("unknown contract %q: give one of %s", o.Contract, strings.Join(Contracts(), ", "))
	case o.Racers < 2 || o.Racers > 20:
		return o, fmt.Errorf("--at-once is %d: give 2 to 20", o.Racers)
	case o.Timeout < 0 || o.Total < 0 || o.Requests < 0:
		return o, errors.New("--requests, --timeout and --total must not be negative")
	case len(o.Prefix)+len(o.Name) > 100 || strings.ContainsFunc(o.Prefix+o.Name, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`",\`, c) }):
		return o, errors.New("--prefix and --name may have at most 100 characters together, all of them visible ASCII except double quotes, commas and backslashes")
	}
	return o, nil
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}
