//go:build unix

package crash_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// history sees every version of every record, on the stream, and finds changes that
// no rule of the protocol allows. It hands the stream on to the worker.
type history struct {
	w       *world
	worker  lambdarun.Invoker
	filters []string

	mu   sync.Mutex
	seen string            // the last sequence number
	last map[string]*image // by the records' keys
}

// image is a version of a record.
type image struct {
	pk, id, state, owner, keep, answer, waits string
	version, lease, tries, until              int64
	expires, jobs                             bool
	phases                                    int
}

// settled reports whether nothing is left to do.
func (i *image) settled() bool { return i != nil && i.state == "done" && !i.jobs && i.expires }

type change struct {
	DynamoDB struct {
		Keys           map[string]attribute
		NewImage       map[string]attribute
		SequenceNumber string
	}
}

type attribute struct {
	S string
	N string
	M map[string]json.RawMessage
	L []json.RawMessage
}

// Invoke takes a batch from the stream.
func (h *history) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var batch struct{ Records []json.RawMessage }
	if err := json.Unmarshal(payload, &batch); err != nil {
		return nil, err
	}
	var pass struct{ Records []json.RawMessage }
	for _, raw := range batch.Records {
		var c change
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
		h.note(&c)
		match, err := eventsource.Match(h.filters, raw)
		if err != nil {
			return nil, err
		}
		if match {
			pass.Records = append(pass.Records, raw)
		}
	}
	if len(pass.Records) == 0 {
		return []byte(`{"batchItemFailures":[]}`), nil
	}
	payload, err := json.Marshal(pass)
	if err != nil {
		return nil, err
	}
	return h.worker.Invoke(ctx, payload)
}

// note compares a version of a record with the one before.
func (h *history) note(c *change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seq := c.DynamoDB.SequenceNumber
	if len(seq) < len(h.seen) || len(seq) == len(h.seen) && seq <= h.seen {
		return // again
	}
	h.seen = seq
	pk := c.DynamoDB.Keys["pk"].S
	before := h.last[pk]
	id := c.DynamoDB.NewImage["id"].S
	if before != nil && before.id != id { // deleted, or freed and then claimed by a new operation
		if before.state != "open" || before.phases > 0 {
			h.find(pk, "lost", "a record with state %q and %d phases is gone", before.state, before.phases)
		}
		delete(h.last, pk)
		before = nil
	}
	if c.DynamoDB.NewImage["st"].S == "" {
		return // a companion
	}
	now := imageOf(c.DynamoDB.NewImage)
	now.pk = pk
	h.last[pk] = now
	h.alone(now)
	if kept := now.keep == "open" || now.keep == "jobs"; kept == now.expires {
		h.find(pk, "lost", "kept for %q, and may expire: %v", now.keep, now.expires)
	}
	if now.jobs && now.expires && now.state == "done" {
		h.find(pk, "lost", "it may expire with its jobs")
	}
	if before == nil {
		return
	}
	switch {
	case now.version < before.version:
		h.find(pk, "wrong", "version %d after %d", now.version, before.version)
	case before.state == "done" && (now.state != "done" || now.answer != before.answer):
		h.find(pk, "wrong", "done, and then %q with another answer", now.state)
	case now.owner != before.owner && now.version <= before.version:
		h.find(pk, "wrong", "version %d by two owners", now.version)
	case now.owner != before.owner && before.state == "open" && before.lease > time.Now().UnixMilli():
		h.find(pk, "wrong", "taken over %d ms before its lease was over", before.lease-time.Now().UnixMilli())
	case now.phases < before.phases && now.state == "open":
		h.find(pk, "lost", "%d phases after %d", now.phases, before.phases)
	case now.tries < before.tries && now.waits == "" && before.waits == "":
		h.find(pk, "wrong", "%d tries after %d", now.tries, before.tries)
	}
}

// alone finds a second record that holds the key of a run.
func (h *history) alone(now *image) {
	h.w.mu.Lock()
	r := h.w.byPK[now.pk]
	var pks []string
	if r != nil {
		pks = slices.Clone(r.pks)
	}
	h.w.mu.Unlock()
	if slices.Contains(pks, now.pk) && slices.ContainsFunc(pks, func(pk string) bool { return pk != now.pk && now.lives() && h.last[pk].lives() }) {
		h.find(now.pk, "doubled", "two records hold its key")
	}
}

// lives reports whether a record has neither expired nor was freed.
func (i *image) lives() bool {
	return i != nil && i.keep != "freed" && (!i.expires || i.until >= time.Now().Unix())
}

func (h *history) find(pk, kind, format string, args ...any) {
	h.w.mu.Lock()
	r := h.w.byPK[pk]
	h.w.mu.Unlock()
	if r != nil {
		r.find(kind, "the record's history: "+format, args...)
	}
}

func imageOf(item map[string]attribute) *image {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(item[name].N, 10, 64) // 0 where it is absent
		return n
	}
	_, expires := item["exp_s"]
	answer, _ := json.Marshal(item["resp"].M)
	phases := 0
	for _, raw := range item["phases"].L {
		var entry struct{ L []json.RawMessage }
		if json.Unmarshal(raw, &entry) != nil || len(entry.L) != 3 { // three: a call has begun
			phases++
		}
	}
	return &image{
		id: item["id"].S, state: item["st"].S, owner: item["owner"].S, keep: item["keep"].S, answer: string(answer), waits: item["waits"].S,
		version: number("ver"), until: number("exp_s"), lease: number("lease_ms"), tries: number("tries"), expires: expires,
		jobs: len(item["jobs"].M) > 0, phases: phases,
	}
}

// of is the last version of the record of a key with these places, of the one that lives
// if there are two; nil if there is none.
func (h *history) of(pks []string) (last *image) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, pk := range pks {
		if i := h.last[pk]; i != nil && (last == nil || i.lives()) {
			last = i
		}
	}
	return last
}

func (h *history) forget(pk string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.last, pk)
}
