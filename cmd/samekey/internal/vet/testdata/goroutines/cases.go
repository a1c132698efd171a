// Package goroutines has handlers for the rule goroutines.
package goroutines

import (
	"context"
	"sync"

	"github.com/samekey/samekey/idem"
)

type Mailer interface {
	Send(ctx context.Context, to, key string) error
}

type App struct{ mailer Mailer }

// want +4 `goroutines: the function of an idem.Foreign doesn't wait for this goroutine: the phase commits without it. Wait for it before returning, or stage a job`

func (a *App) bad(ctx context.Context, to string) error {
	_, err := idem.Foreign(ctx, "mailed", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		go a.mailer.Send(ctx, to, tx.Key("mailer"))
		return true, nil
	})
	return err
}

func (a *App) good(ctx context.Context, all []string) error {
	_, err := idem.Foreign(ctx, "mailed", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		var wg sync.WaitGroup
		for _, to := range all {
			wg.Go(func() { a.mailer.Send(ctx, to, tx.Key("mailer", to)) })
		}
		wg.Wait()
		return true, nil
	})
	return err
}

func (a *App) byHelper(ctx context.Context) error {
	_, err := idem.Atomic(ctx, "ordered", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		a.later(ctx) // want `goroutines: App.later starts a goroutine: the function of an idem.Atomic doesn't wait` `effects: App.later calls Mailer.Send runs in an idem.Atomic`
		return true, nil
	})
	return err
}

func (a *App) later(ctx context.Context) { go a.mailer.Send(ctx, "", "") }

func byName(ctx context.Context) error {
	_, err := idem.Atomic(ctx, "ordered", unwaited)
	return err
}

func unwaited(context.Context, *idem.Tx) (bool, error) {
	var wg sync.WaitGroup
	wg.Go(func() {}) // want `goroutines: the function of an idem.Atomic doesn't wait`
	return true, nil
}

// A channel waits as well, and code outside of phases may start goroutines.
func (a *App) alsoGood(ctx context.Context) error {
	go func() {}()
	_, err := idem.Foreign(ctx, "mailed", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		done := a.started(ctx, tx.Key("mailer"))
		return true, <-done
	})
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "again", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		out := make(chan error)
		go func() {
			defer close(out)
			out <- a.mailer.Send(ctx, "", tx.Key("mailer"))
		}()
		for err := range out {
			if err != nil {
				return false, err
			}
		}
		select {
		case <-ctx.Done():
		default:
		}
		return true, nil
	})
	return err
}

func (a *App) started(ctx context.Context, key string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- a.mailer.Send(ctx, "", key) }()
	return done
}

// A wait counts for goroutines that began before it.
func (a *App) order(ctx context.Context, out chan error, all []error) {
	idem.Foreign(ctx, "received before", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		<-out
		go a.mailer.Send(ctx, "", tx.Key("mailer")) // want `goroutines: the function of an idem.Foreign doesn't wait`
		return true, nil
	})
	idem.Foreign(ctx, "selected", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		go a.mailer.Send(ctx, "", tx.Key("mailer"))
		select {
		case <-ctx.Done():
		}
		return true, nil
	})
	idem.Foreign(ctx, "ranged", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		go a.mailer.Send(ctx, "", tx.Key("mailer"))
		for range out {
		}
		return true, nil
	})
	idem.Foreign(ctx, "nothing waits", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		go a.mailer.Send(ctx, "", tx.Key("mailer")) // want `goroutines: the function of an idem.Foreign doesn't wait`
		go a.mailer.Send(ctx, "", tx.Key("mailer", "2"))
		for range all {
		}
		return !(-len(all) > 0), nil
	})
	idem.Atomic(ctx, "recursive", recursive)
}

func recursive(ctx context.Context, tx *idem.Tx) (bool, error) { return recursive(ctx, tx) }
