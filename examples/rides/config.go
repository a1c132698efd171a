package rides

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda/metrics"
)

// Env reads a function's settings from the environment, and collects errors. Call Err once
// all settings are read. The zero Env is ready to use.
type Env struct{ errs []error }

// Err returns the errors of missing or wrong settings; nil if there are none.
func (e *Env) Err() error { return errors.Join(e.errs...) }

// Text returns a required setting.
func (e *Env) Text(name string) string {
	v := os.Getenv(name)
	if v == "" {
		e.errs = append(e.errs, fmt.Errorf("%s is not set", name))
	}
	return v
}

// Duration returns a setting such as 1.5s, or least if the setting is shorter; 0 if
// it is not set.
func (e *Env) Duration(name string, least time.Duration) time.Duration {
	v := os.Getenv(name)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		e.errs = append(e.errs, fmt.Errorf("%s is %q: not a duration such as 1.5s or 5m", name, v))
	}
	return max(d, least)
}

// Flag returns true for a setting of 1, and false for 0 or if it is not set.
func (e *Env) Flag(name string) bool {
	v := os.Getenv(name)
	if v != "" && v != "0" && v != "1" {
		e.errs = append(e.errs, fmt.Errorf("%s is %q: 1 turns it on, 0 off", name, v))
	}
	return v == "1"
}

// bookingRetention is how long a booking's key is remembered. If a bug breaks requests on
// Friday and is mended on Monday, these requests can still complete.
const bookingRetention = 72 * time.Hour

// A receipt's job is remembered for longer than the job's message can come again:
// template.yaml lets the queue keep the message for 14 days, and the dead letters for
// another 14. A message that came later would send a second mail.
const receiptsRetention = 30 * 24 * time.Hour

// The namespaces of the functions that keep records. Each function has its own part of the
// table, and its role allows no other part (see template.yaml).
const (
	RidesNamespace    = "rides"
	ReceiptsNamespace = "receipts"
)

// Engine returns an engine with the settings that all functions have in common.
func Engine(store store.Store, namespace string, optFns ...func(*idem.Options)) *idem.Engine {
	common := func(o *idem.Options) {
		o.Namespace = namespace
		o.Retention = bookingRetention
		o.CallsOut = namespace == RidesNamespace // every booking charges
		if namespace == ReceiptsNamespace {
			o.Retention = receiptsRetention
		}
		o.Logger = Logger()
		o.Hooks = idem.Join(metrics.New(os.Stdout, MetricsApp).Hooks(), idem.Log(o.Logger))
	}
	return idem.New(store, append([]func(*idem.Options){common}, optFns...)...)
}

// MetricsApp is the value of the metrics' dimension App.
const MetricsApp = "rides"

// Logger returns the functions' logger.
func Logger() *slog.Logger { return slog.New(slog.NewJSONHandler(os.Stderr, nil)) }
