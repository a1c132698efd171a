//go:build unix

package killsweep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/prove"
)

// How long the payment provider remembers a key, and says so. The shorter one is
// over when a dead process's lease is, the longer one at no time in a test.
const (
	forgetful = 2 * time.Second
	mindful   = time.Hour
)

// TestKillSweepOfAProviderThatForgets kills the process of a ride at every call it
// makes. Whoever goes on with it comes after the provider has forgotten the key. A
// charge that may have been taken by then isn't asked for again: the ride is stuck,
// and listed. A human looks at the provider's list, and settles it by the command.
// With a provider that still knows the key nobody has to.
func TestKillSweepOfAProviderThatForgets(t *testing.T) { //nolint:tparallel // what is left is looked at after its rides
	t.Parallel()
	b := openBackstage(t)
	op := newOperator(t, b)
	type ride struct {
		name string
		play func(t *testing.T) bool
	}
	var all []ride
	for _, m := range modes {
		for _, p := range points(m.calls) {
			if p.harm != killed {
				continue // a request that was stopped on its way arrives when a human has long looked
			}
			for _, end := range []ending{retried, completes} {
				all = append(all, ride{m.name + ", " + p.name + ", " + string(end), func(t *testing.T) bool {
					t.Helper()
					return newForgetfulRun(t, b, m, end, forgetful).playForgotten(t, op, p)
				}})
			}
		}
	}
	t.Run("rides", func(t *testing.T) {
		for _, r := range prove.Sample(t, len(all)/4, all) {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				harmed(t, func() bool { return r.play(t) })
			})
		}
	})
	if left := op.list(t); len(left) > 0 {
		t.Errorf("left open: %+v", left)
	}
}

func newForgetfulRun(t *testing.T, b *backstage, m mode, end ending, memory time.Duration) *run {
	t.Helper()
	r := newRun(t, b, m, end, "PAYMENTS_MEMORY="+memory.String())
	r.provider.Memory = memory
	return r
}

// playForgotten kills the process, and has the request come to its end, with a
// human's help where the charge may have been taken and nobody knows. It returns false
// if no process was killed.
func (r *run) playForgotten(t *testing.T, op *operator, p point) bool {
	t.Helper()
	held := r.tap.Hold(p.nth, nil, p.side)
	defer held.Drop()
	first := r.inBackground(t)
	pid, ok := r.reached(t, held)
	if !ok {
		held.Drop()
		<-first
		r.end = retried
		r.helped(t, op)
		return false
	}
	kill(t, r.function, pid, held)
	if a := <-first; a.status < http.StatusInternalServerError {
		t.Errorf("the client of the dead process gets %d %s", a.status, a.body)
	}
	rec := r.record(t)
	if rec == nil {
		r.end = retried // nobody but the client knows of it, and no charge is in doubt
		r.helped(t, op)
		r.finish(t)
		return true
	}
	// Its attempt may have asked for the charge unless the charge is recorded.
	doubtful := rec.State == store.Open && !slices.ContainsFunc(rec.Phases, func(ph store.Phase) bool { return ph.Name == "charge_created" })
	if doubtful {
		before, _ := r.look(t)
		r.untilStuck(t)
		if after, _ := r.look(t); after.Charges != before.Charges {
			t.Errorf("%d charges while it is stuck, and %d before", after.Charges, before.Charges)
		}
		op.settle(t, r)
	}
	r.helped(t, op)
	r.finish(t)
	var charges []struct{ Calls int }
	list(t, &r.provider, "/v1/charges", &charges)
	if len(charges) != 1 || charges[0].Calls != 1 {
		t.Errorf("the provider was asked for %+v, want one charge, once", charges)
	}
	return true
}

// untilStuck waits until a ride is given up. Its client, if it has one, retries,
// and is told.
func (r *run) untilStuck(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for rec := r.record(t); rec.State != store.Stuck; rec = r.record(t) {
		if rec.State == store.Done {
			l, _ := r.look(t)
			t.Fatalf("it comes to its end, though its charge was in doubt: %d charges", l.Charges)
		}
		if r.end == retried {
			r.post(ctx)
		}
		if !sleep(ctx, 100*time.Millisecond) {
			t.Fatalf("it isn't given up: %+v", rec)
		}
	}
	if a := r.post(ctx); a.status != http.StatusConflict {
		t.Errorf("the client of a stuck ride gets %d %s", a.status, a.body)
	}
}

// helped waits for the end of a ride whose client, if it has one, retries. A slow
// machine's attempt may take longer than this provider remembers: then its charge is
// in doubt as well, and the human is asked again.
func (r *run) helped(t *testing.T, op *operator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for rec := r.record(t); rec == nil || rec.State != store.Done; rec = r.record(t) {
		if rec != nil && rec.State == store.Stuck {
			op.settle(t, r)
		}
		if r.end == retried {
			r.post(ctx)
		}
		if !sleep(ctx, 100*time.Millisecond) {
			t.Fatalf("it doesn't come to its end: %+v", rec)
		}
	}
}

// operator is a human with the command, for the table of a backstage.
type operator struct {
	command string
	env     []string
}

func newOperator(t *testing.T, b *backstage) *operator {
	t.Helper()
	dir := t.TempDir()
	op := &operator{command: filepath.Join(dir, "samekey")}
	if err := lambdarun.BuildBootstrapIn(t.Context(), filepath.Join("..", "..", "cmd", "samekey"), ".", op.command); err != nil {
		t.Fatal(err)
	}
	op.env = append(b.db.Env(),
		"PATH="+os.Getenv("PATH"), "HOME="+dir, "USER=jane", "IDEM_TABLE="+b.records,
		"AWS_REGION=us-east-1", "AWS_ENDPOINT_URL_DYNAMODB="+b.db.Endpoint,
	)
	return op
}

func (op *operator) run(t *testing.T, args ...string) (stdout []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), op.command, args...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = op.env, &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("samekey %v: %v: %s", args, err, stderr.Bytes())
	}
	return stdout
}

func (op *operator) list(t *testing.T) []stream.Entry {
	t.Helper()
	var report stream.Report
	if err := json.Unmarshal(op.run(t, "list", "--scan", "--json", "--pages", "1000"), &report); err != nil || !report.Complete {
		t.Fatalf("got %+v, %v", report, err)
	}
	return report.Entries
}

// settle does what docs/start/jobs.md tells people to do: they look up on the provider's
// side whether the charge was taken.
func (op *operator) settle(t *testing.T, r *run) {
	t.Helper()
	listed := slices.DeleteFunc(op.list(t), func(e stream.Entry) bool { return e.PK != r.pk })
	if len(listed) != 1 || listed[0].Reason != stream.ReasonUnknown || listed[0].Phase != "charge_created" {
		t.Errorf("listed %+v", listed)
	}
	var charges []struct {
		ID string `json:"id"`
	}
	list(t, &r.provider, "/v1/charges", &charges)
	switch len(charges) {
	case 0:
		op.run(t, "settle", "--yes", "--not-made", r.pk)
	case 1:
		result, err := json.Marshal(charges[0])
		if err != nil {
			t.Fatal(err)
		}
		op.run(t, "settle", "--yes", "--result", string(result), r.pk)
	default:
		t.Errorf("%d charges", len(charges))
	}
}
