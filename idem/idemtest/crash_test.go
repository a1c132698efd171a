package idemtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/failtest"
)

// crashes runs a handler everywhere, and returns the failures.
func crashes(handler func(context.Context, *idemtest.World) (idem.Response, error), check func(testing.TB, *idemtest.World, idem.Response), optFns ...func(*idemtest.CrashOptions)) []string {
	return failtest.Run(func(t testing.TB) {
		idemtest.CrashEverywhere(t, func(ctx context.Context, w *idemtest.World, _ *idem.Request) (idem.Response, error) {
			return handler(ctx, w)
		}, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "k", Method: "POST", Path: "/orders", Body: []byte("{}")}, check, optFns...)
	})
}

// called is a handler that makes one keyed call, by a fake of a Go interface.
func called(ctx context.Context, w *idemtest.World) (idem.Response, error) {
	e, err := idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (string, error) {
		e, err := w.Call(ctx, "charge", tx.Key("payments"), 2000)
		return e.ID, err
	})
	return idem.Response{Status: 201, Body: []byte(e)}, err
}

func TestCrashEverywhereFindsNothingInASoundHandler(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*idem.Options){
		"claim first":   func(*idem.Options) {},
		"not resumable": func(o *idem.Options) { o.Resumable = false },
	} {
		looked := 0
		got := crashes(called, func(_ testing.TB, w *idemtest.World, answer idem.Response) {
			if looked++; string(answer.Body) != "1" || len(w.Provider.Effects("charge")) != 1 {
				t.Errorf("%s: %s, %+v", name, answer.Body, w.Provider.Effects())
			}
		}, func(o *idemtest.CrashOptions) { o.Engine = set })
		if got != nil || looked < 8 {
			t.Errorf("%s: %d runs, %q", name, looked, got)
		}
	}
}

// Every call of the request is a point, in both ways, for a retry and, where the
// request is stored, for a completer.
func TestCrashEverywhereCrashesAtEveryCall(t *testing.T) {
	t.Parallel()
	got := crashes(called, func(t testing.TB, _ *idemtest.World, _ idem.Response) {
		t.Error("looked at")
	})
	if len(got) != 1 || !strings.HasPrefix(got[0], "without a crash: looked at") {
		t.Fatalf("what fails without a crash is told once: %q", got)
	}
	n := 0
	got = crashes(called, func(t testing.TB, _ *idemtest.World, _ idem.Response) {
		if n++; n > 1 {
			t.Fatalf("looked at %d", n) // each another failure: the same one is told once
		}
	})
	for i, f := range got {
		got[i], _, _ = strings.Cut(f, ": looked at")
	}
	want := []string{
		"with every Atomic run twice",
		"crash before call 1 (the claim), then the client's retry",
		"crash after call 1 (the claim), then the client's retry",
		"crash after call 1 (the claim), then a completer",
		"crash before call 2 (the write before a call), then the client's retry",
		"crash before call 2 (the write before a call), then a completer",
		"crash after call 2 (the write before a call), then the client's retry",
		"crash after call 2 (the write before a call), then a completer",
		"crash before call 3 (charge), then the client's retry",
		"crash before call 3 (charge), then a completer",
		"crash after call 3 (charge), then the client's retry",
		"crash after call 3 (charge), then a completer",
		`crash before call 4 (the commit of phase "paid"), then the client's retry`,
		`crash before call 4 (the commit of phase "paid"), then a completer`,
		`crash after call 4 (the commit of phase "paid"), then the client's retry`,
		`crash after call 4 (the commit of phase "paid"), then a completer`,
		"crash before call 5 (the commit of the answer), then the client's retry",
		"crash before call 5 (the commit of the answer), then a completer",
		"crash after call 5 (the commit of the answer), then the client's retry",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestCrashEverywhereFinds(t *testing.T) {
	t.Parallel()
	answered := idem.Response{Status: 201}
	for _, tt := range []struct {
		name    string
		handler func(context.Context, *idemtest.World) (idem.Response, error)
		want    string
	}{
		{"an effect in an Atomic", func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "a", func(ctx context.Context, _ *idem.Tx) (string, error) {
				e, err := w.Call(ctx, "mail", "", "thank you")
				return e.ID, err
			})
			return answered, err
		}, "with every Atomic run twice: effects of mail: 2, and without a crash 1"},
		{"an answer that isn't stored", func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			_, err := called(ctx, w)
			return idem.Response{Status: 500}, err
		}, "without a crash: the answer is not stored"},
		{"an error after a crash", func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			if op, _ := idem.FromContext(ctx); op.TakenOver() {
				return answered, errors.New("confused")
			}
			return called(ctx, w)
		}, "crash after call 1 (the claim), then the client's retry: the request ends in an error: "},
		{"a panic after a crash", func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			if op, _ := idem.FromContext(ctx); op.TakenOver() {
				panic("confused")
			}
			return called(ctx, w)
		}, "crash after call 1 (the claim), then the client's retry: the request ends in an error: "},
		{"a job that is lost", func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			resp, err := called(ctx, w)
			if op, _ := idem.FromContext(ctx); err == nil && !op.TakenOver() {
				err = idem.Stage(ctx, idem.NewJob("mail", 1))
			}
			return resp, err
		}, `crash after call 1 (the claim), then the client's retry: jobs of kind "mail": 0, and without a crash 1`},
		{"no phase", func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			_, err := w.Call(ctx, "charge", "", 2000)
			return answered, err
		}, "crash after call 2 (charge), then the client's retry: effects of charge: 2, and without a crash 1"},
		{"a handler without an effect", func(context.Context, *idemtest.World) (idem.Response, error) {
			return answered, nil
		}, ""},
		{"a call that can't be repeated", func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			_, err := idem.Foreign(ctx, "paid", func(ctx context.Context, _ *idem.Tx) (string, error) {
				e, err := w.Call(ctx, "charge", "", 2000)
				return e.ID, err
			}, idem.NotIdempotent())
			return answered, err
		}, `crash after call 2 (the commit of the intent "paid"), then the client's retry: the request ends in an error: `},
	} {
		got := crashes(tt.handler, nil)
		found := slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, tt.want) })
		if tt.want == "" && got != nil || tt.want != "" && !found {
			t.Errorf("%s: want %q in\n%s", tt.name, tt.want, strings.Join(got, "\n"))
		}
	}
}

// An operation that waits for people is no failure where it may end so, unless
// something was done twice.
func TestCrashEverywhereMayStick(t *testing.T) {
	t.Parallel()
	notIdempotent := func(before func(context.Context, *idemtest.World) error) func(context.Context, *idemtest.World) (idem.Response, error) {
		return func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
			if err := before(ctx, w); err != nil {
				return idem.Response{}, err
			}
			_, err := idem.Foreign(ctx, "paid", func(ctx context.Context, _ *idem.Tx) (string, error) {
				e, err := w.Call(ctx, "charge", "", 2000)
				return e.ID, err
			}, idem.NotIdempotent())
			return idem.Response{Status: 201}, err
		}
	}
	mayStick := func(o *idemtest.CrashOptions) { o.MayStick = true }
	if got := crashes(notIdempotent(func(context.Context, *idemtest.World) error { return nil }), nil, mayStick); got != nil {
		t.Errorf("%q", got)
	}
	got := crashes(notIdempotent(func(ctx context.Context, w *idemtest.World) error {
		_, err := w.Call(ctx, "mail", "", "")
		return err
	}), nil, mayStick)
	if !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "effects of mail: 2") }) {
		t.Errorf("a second mail before a call that can't be repeated: %q", got)
	}
}

// A process that is down reaches nothing, whatever still runs in it.
func TestACrashedProcessReachesNothing(t *testing.T) {
	t.Parallel()
	got := crashes(func(ctx context.Context, w *idemtest.World) (idem.Response, error) {
		res, err := called(ctx, w)
		if errors.Is(err, idemtest.ErrCrashed) || w.Store().Crashed() {
			before := len(w.Provider.Effects())
			_, again := w.Call(ctx, "charge", "", 1)
			_, mail := w.Client().Get("https://provider.example/mails")
			_, claim := w.Store().Claim(context.WithoutCancel(ctx), store.Claim{Next: &store.Record{PK: "x"}})
			if !errors.Is(again, idemtest.ErrCrashed) || !errors.Is(mail, idemtest.ErrCrashed) || !errors.Is(claim, idemtest.ErrCrashed) || ctx.Err() == nil || len(w.Provider.Effects()) != before {
				t.Errorf("after the crash: %v, %v, %v, %v", again, mail, claim, ctx.Err())
			}
		}
		return res, err
	}, nil)
	if got != nil {
		t.Errorf("%q", got)
	}
}

// A provider that fails at first, and a store of the user's.
func TestCrashEverywhereBegins(t *testing.T) {
	t.Parallel()
	opened := 0
	got := crashes(called, nil, func(o *idemtest.CrashOptions) {
		o.Begin = func(w *idemtest.World) { w.Provider.Next(idemtest.Fate{LoseAnswer: true}) }
		shared := new(idem.MemoryStore)
		o.Store = func() store.Store { opened++; return shared }
	})
	if got != nil || opened < 5 {
		t.Errorf("%d stores, %q", opened, got)
	}
}

func TestCrashProgramNeedsTheWorld(t *testing.T) {
	t.Parallel()
	apart := idem.New(new(idem.MemoryStore))
	got := failtest.Run(func(t testing.TB) {
		idemtest.CrashProgram(t, func(*idemtest.World) idemtest.Program[idem.Response] {
			return idemtest.Program[idem.Response]{
				Send: func(ctx context.Context) (idem.Response, bool, error) {
					res, err := apart.Do(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
					return res.Response, res.Replayed, err
				},
				Diff: func(a, b idem.Response) string { return cmp.Diff(a, b) },
			}
		}, nil)
	})
	if len(got) != 1 || !strings.HasPrefix(got[0], "the request makes no call") {
		t.Errorf("an engine that isn't the world's: %q", got)
	}
}
