//go:build unix

package crash_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samekey/samekey/idem"
)

// patience is how long anything may take. A planted bug that leaves a request open is
// found then: CRASH_PATIENCE makes that earlier.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("CRASH_PATIENCE")); err == nil {
		return d
	}
	return 10 * time.Minute
}()

// run is a request with its key, its client, and the faults that it meets.
type run struct {
	w      *world
	path   *path
	id     string
	amount int
	wake   chan struct{} // closed when the stopped processes go on
	woken  sync.Once

	// Guarded by the world's mu.
	pks      []string      // the places of its key; nil before they are known
	came     bool          // the time of its job
	asked    int           // times that it was sent
	armed    []shot        // the faults to come, in order
	calls    []point       // that met nothing, once all faults have come
	asleep   []*invocation // in processes that are stopped, or were
	packet   func()        // sends a packet that is late
	packetOf *invocation
	early    bool // it comes while a later attempt has the key
	findings []finding
	slow     bool // an attempt took so long that its time may have ended: by its fault, or on a busy machine

	waited bool // for people
}

// finding is something that must not be.
type finding struct{ kind, text string }

func (w *world) newRun(n int, p *path, armed ...shot) *run {
	r := &run{
		w: w, path: p, id: fmt.Sprintf("run-%d-", n), amount: 100 + n, wake: make(chan struct{}),
		armed: slices.Concat(p.before, armed),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[r.id] = r
	return r
}

// meets returns the fault that a call meets. The caller holds the world's mu.
func (r *run) meets(c *call) *fault {
	if r == nil {
		return nil
	}
	nth := c.inv.names[c.name]
	if c.inv.stage == atWorker {
		nth = 1 // how many calls a batch takes is up to the stream
	}
	// A later attempt has the key, or is about to take it, at its second call; at its
	// third it has it in any case. Runs differ.
	if r.packet != nil && r.early && c.inv != r.packetOf && strings.HasPrefix(c.inv.stage, atAPI) && c.inv.calls == 2+r.amount%2 {
		send := r.packet
		r.packet = nil
		return &fault{apply: func(c *call) (*http.Response, error) {
			send()
			return c.send()
		}}
	}
	p := point{c.inv.stage, c.name, nth}
	if len(r.armed) == 0 {
		r.calls = append(r.calls, p)
		return nil
	}
	if r.armed[0].point != p {
		return nil
	}
	f := r.armed[0].fault
	r.armed = r.armed[1:]
	return f
}

// points are the crash points among the calls that met nothing, in order. A queue's numbers
// are asked once a minute, and a state machine's type once by a process, so in any request.
func (r *run) points() (points []point) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for _, c := range r.calls {
		if !slices.Contains(points, c) && !strings.HasPrefix(c.call, "GetQueueAttributes") && !strings.HasPrefix(c.call, "Describe") && slices.Contains(r.path.stages, c.stage) {
			points = append(points, c)
		}
	}
	slices.SortStableFunc(points, func(a, b point) int {
		return cmp.Compare(slices.Index(r.path.stages, a.stage), slices.Index(r.path.stages, b.stage))
	})
	return points
}

func (r *run) find(kind, format string, args ...any) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.findings = append(r.findings, finding{kind, fmt.Sprintf(format, args...)})
}

// wasSlow reports whether an attempt's time may have ended before its work.
func (r *run) wasSlow() bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.slow
}

// found returns what was found, and whether all faults have come.
func (r *run) found() (findings []finding, met bool) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return slices.Clone(r.findings), len(r.armed) == 0
}

// reply is what the client gets.
type reply struct {
	status int
	header http.Header
	body   string
}

// replied is a 2xx that ends the client's retries.
func (a reply) replied() bool { return a.status == http.StatusCreated || a.status == http.StatusOK }

func (a reply) stuck() bool {
	return a.status == http.StatusConflict && strings.Contains(a.body, "idempotency_stuck")
}

// wait is how long the client waits before it tries again.
func (a reply) wait() time.Duration {
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return 50 * time.Millisecond
}

func (r *run) send(ctx context.Context, method, path string, amount int) reply {
	body, err := json.Marshal(map[string]any{"run": r.id, "amount": amount})
	if err != nil {
		panic(err)
	}
	req := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", r.id)
	if r.path.hook {
		sign(req, r.id, body)
	}
	front := r.w.front
	if r.path.begins == first && r.asked > 0 || r.path.begins == second && r.asked == 0 {
		front = r.w.newFront
	}
	if r.path.freed && r.asked == 0 {
		req.Header.Set("X-Give-Up", "yes")
	}
	r.asked++
	rec := httptest.NewRecorder()
	rec.Code = http.StatusGatewayTimeout // unless there is an answer before ctx ends
	r.w.posts.Add(1)
	front.ServeHTTP(rec, req)
	return reply{rec.Code, rec.Header(), rec.Body.String()}
}

// sign signs a delivery as the Standard Webhooks specification says.
func sign(req *http.Request, id string, body []byte) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(sum, "%s.%s.%s", id, now, body)
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", now)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
}

func (r *run) post(ctx context.Context) reply {
	return r.send(ctx, http.MethodPost, r.path.route, r.amount)
}

var errNoEnd = errors.New("it doesn't come to its end")

// answered does as a client does until it is answered for good.
func (r *run) answered(ctx context.Context) (reply, error) {
	sent := false
	for {
		var a reply
		if sent && r.path.leaves {
			a = r.send(ctx, http.MethodGet, "/operations/"+r.id, r.amount)
		} else {
			a = r.post(ctx)
		}
		sent = true
		switch {
		case ctx.Err() != nil: // and so it has no answer
			return a, fmt.Errorf("%w: the record is %+v", errNoEnd, r.record())
		case a.replied() || a.stuck():
			return a, nil
		case r.path.fails && a.status == http.StatusConflict && !strings.Contains(a.body, "idempotency_"):
			return a, fmt.Errorf("the client is told %s for good, though the operation goes on", a.body)
		case a.status == http.StatusNotFound && r.path.leaves: // nothing is known of it
			sent = false
		case a.status != http.StatusConflict && a.status != http.StatusAccepted && a.status < http.StatusInternalServerError:
			return a, fmt.Errorf("the client gets %d %.300s", a.status, a.body)
		}
		if r.path.late {
			r.w.expire(ctx, r)
		}
		wait := a.wait()
		if r.path.polls {
			wait = min(wait, time.Second)
		}
		if !sleep(ctx, wait) {
			return a, fmt.Errorf("%w: the client gets %d %.300s, the record is %+v", errNoEnd, a.status, a.body, r.record())
		}
	}
}

// play has the request come to its end, and checks that it has one effect of each
// kind and one answer.
func (r *run) play(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer r.goOn()
	if err := r.toItsEnd(ctx); err != nil {
		kind := "wrong"
		if errors.Is(err, errNoEnd) {
			kind = "lost"
		}
		r.find(kind, "%v", err)
	}
}

func (r *run) toItsEnd(ctx context.Context) error {
	a, err := r.answered(ctx)
	if err != nil {
		return err
	}
	if err := r.wakes(ctx, a); err != nil {
		return err
	}
	for tries := 0; a.stuck() && (tries == 0 || r.wasSlow()); tries++ {
		r.waited = true
		if err := r.settle(ctx); err != nil {
			return err
		}
		if a, err = r.answered(ctx); err != nil {
			return err
		}
	}
	if !a.replied() {
		return fmt.Errorf("settled, the client gets %d %.300s", a.status, a.body)
	}
	if err := r.checkAnswer(a); err != nil {
		return err
	}
	if err := r.settled(ctx); err != nil {
		return err
	}
	return r.again(ctx, a)
}

// goOn has the stopped processes go on.
func (r *run) goOn() { r.woken.Do(func() { close(r.wake) }) }

// wakes has the stopped processes go on and the late packet arrive, after the client
// was answered, and waits until they have come to their ends.
func (r *run) wakes(ctx context.Context, a reply) error {
	r.goOn()
	r.w.mu.Lock()
	asleep, packet := slices.Clone(r.asleep), r.packet
	r.packet = nil
	r.w.mu.Unlock()
	if packet != nil {
		packet()
	}
	for _, inv := range asleep {
		select {
		case <-inv.ended:
		case <-ctx.Done():
			return errors.New("a process that was woken doesn't come to its end")
		}
		var late struct {
			StatusCode int
			Body       string
		}
		if inv.stage == atAPI && json.Unmarshal(inv.out, &late) == nil && late.StatusCode == http.StatusCreated && a.replied() && late.Body != a.body {
			return fmt.Errorf("the process that was woken answers %.300s, others %.300s", late.Body, a.body)
		}
	}
	return nil
}

// settle does as an operator does who looks the call up on the provider's side.
func (r *run) settle(ctx context.Context) error {
	for i := r.record(); i == nil || i.state != "stuck" || i.waits == ""; i = r.record() {
		if !sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the stuck record isn't on the list: %+v", i)
		}
	}
	var s idem.Settlement
	switch made := r.w.provider.about(r.id); {
	case r.path.fails:
		s.Answer = &idem.Response{Status: http.StatusOK, Body: []byte("settled")}
		if made.Tries > 3+3 { // the first, those of the completer, and those it didn't hear of
			r.find("wrong", "tried %d times before it was stuck", made.Tries)
		}
	case len(made.Charges) == 0:
		s.NotMade = true
	default:
		s.Result, _ = json.Marshal(r.id + "0")
	}
	for {
		err := r.w.operator().Settle(ctx, r.record().pk, s)
		if err == nil {
			return nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("settle: %w", err)
		}
	}
}

// at notes a place of the run's key. Without a change of scope it has one. The caller holds
// the world's mu.
func (r *run) at(pk string) {
	if r.path.begins == only {
		r.pks = []string{pk}
	} else if !slices.Contains(r.pks, pk) {
		r.pks = append(r.pks, pk)
	}
}

// record is the last version of the run's record; nil if there is none. While the scope
// changes, the key has two places, and an expired record may be at the other.
func (r *run) record() *image {
	r.w.mu.Lock()
	pks := slices.Clone(r.pks)
	r.w.mu.Unlock()
	return r.w.history.of(pks)
}

func (r *run) checkAnswer(a reply) error {
	if r.path.hook || r.path.fails {
		return nil
	}
	var out struct {
		Run    string
		Amount int
		Charge string
		Effect string
		More   string
	}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		return fmt.Errorf("the answer %.300s: %w", a.body, err)
	}
	if out.Run != r.id || out.Amount != r.amount || out.Effect == "" || r.path.charges > 0 && out.Charge != r.id+"0" {
		return fmt.Errorf("the answer %.300s to run %s of %d", a.body, r.id, r.amount)
	}
	return nil
}

// settled waits until nothing is left to do, and compares the effects.
func (r *run) settled(ctx context.Context) error {
	for i := r.record(); !i.settled(); i = r.record() {
		if !sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("%w: the record is left as %+v", errNoEnd, i)
		}
	}
	for {
		done, err := r.effects(ctx)
		if done || err != nil {
			return err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			got, _ := r.w.effects(context.WithoutCancel(ctx), r.id)
			return fmt.Errorf("%w: effects %v, at the provider %+v", errNoEnd, got, r.w.provider.about(r.id))
		}
	}
}

// effects reports whether all effects are there. More of them is an error.
func (r *run) effects(ctx context.Context) (all bool, err error) {
	got, err := r.w.effects(ctx, r.id)
	if err != nil {
		return false, nil //nolint:nilerr // the reader's own failure; it reads again
	}
	made := r.w.provider.about(r.id)
	r.compare(got, made)
	return maps.Equal(got, r.path.effects) && len(made.Charges) == r.path.charges && len(made.Mails) == r.path.mails && r.w.shipped(r.id) == r.path.ships, nil
}

// compare finds effects that are doubled.
func (r *run) compare(got map[string]int, made asked) {
	for kind, n := range got {
		if n > r.path.effects[kind] {
			r.find("doubled", "%d entries %q in the users' table, want %d", n, kind, r.path.effects[kind])
		}
	}
	if len(made.Charges) > r.path.charges {
		r.find("doubled", "%d charges, want %d, under the keys %v", len(made.Charges), r.path.charges, made.Charges)
	}
	if n := r.w.shipped(r.id); n > r.path.ships {
		r.find("doubled", "%d executions, want %d", n, r.path.ships)
	}
	if len(made.Mails) > r.path.mails {
		r.find("doubled", "%d mails, want %d, for the jobs %v", len(made.Mails), r.path.mails, made.Mails)
	}
}

// again sends the request once more, as at first, and another one under its key.
func (r *run) again(ctx context.Context, a reply) error {
	r.asked = 0
	for {
		b := r.post(ctx)
		if b.status >= http.StatusInternalServerError && sleep(ctx, b.wait()) {
			continue // the repetition has met a fault of a neighbour
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: the repetition gets no answer", errNoEnd)
		}
		if b.status != a.status || b.body != a.body || b.header.Get("Idempotent-Replayed") != "true" {
			return fmt.Errorf("the client gets %d %.300s, and then %d %.300s", a.status, a.body, b.status, b.body)
		}
		break
	}
	if r.path.hook {
		return nil
	}
	for {
		b := r.send(ctx, http.MethodPost, r.path.route, r.amount+1)
		if b.status >= http.StatusInternalServerError && sleep(ctx, b.wait()) {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: another request under the key gets no answer", errNoEnd)
		}
		if b.status != http.StatusUnprocessableEntity {
			return fmt.Errorf("another request under the key gets %d %.300s", b.status, b.body)
		}
		return nil
	}
}
