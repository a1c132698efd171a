package enginetest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
)

// engineKey tests the place and the form of a key.
func engineKey(s suite) {
	noKey := order("", "1")

	s.run("a missing key is 400 where one is required, and nothing is stored", func(t *testing.T, e *env) {
		var a app
		e.costs(t, 0, func() { serve(t, e.engine(), noKey, a.run).status(t, 400) })
		a.ran(t, 0)
	})

	s.run("an optional key may be missing: it runs every time and nothing is stored", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) { o.Key = idem.KeyOptional })
		e.costs(t, 0, func() {
			for range 3 {
				if r := serve(t, eng, noKey, a.run).status(t, 201); !r.Passed || r.Replayed {
					t.Errorf("got %v, want it passed", r)
				}
			}
		})
		a.ran(t, 3)
		first := serve(t, eng, keyed("k", "1"), a.run).status(t, 201)
		serve(t, eng, keyed("k", "1"), a.run).replays(t, first)
		a.ran(t, 4)
	})

	s.run("a missing key is made where that is allowed, logged, told, and good for a retry", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) { o.Key = idem.KeyGenerate })
		first := serve(t, eng, noKey, a.run).status(t, 201)
		other := serve(t, eng, noKey, a.run).status(t, 201)
		a.ran(t, 2)
		if n := e.log.count("request without an idempotency key"); n != 2 {
			t.Errorf("%d warnings, want one for each", n)
		}
		made := first.Header.Get(idem.KeyHeader)
		if made == "" || made == other.Header.Get(idem.KeyHeader) {
			t.Fatalf("keys %q and %q were made, want two different ones", made, other.Header.Get(idem.KeyHeader))
		}
		serve(t, eng, keyed(made, "1"), a.run).replays(t, first)
		if e.log.count(made) != 0 {
			t.Error("the key is in the log")
		}
	})

	s.run("255 characters are accepted, bad keys are 400 and never reach the store", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		serve(t, eng, keyed(strings.Repeat("k", 255), "1"), a.run).status(t, 201)
		a.ran(t, 1)
		e.costs(t, 0, func() {
			for _, bad := range []string{
				strings.Repeat("k", 256), strings.Repeat("k", 10_000), "", "  ", `""`, `"unterminated`,
				"a b", "a\tb", "a\x00b", "a\r\nb", "a\x7fb", "schlüssel", "\xff\xfe", "a\u202eb", "a,b", `"a","b"`, `"a" "b"`,
			} {
				serve(t, eng, keyed(bad, "1"), a.run).status(t, 400).header(t, idem.KeyHeader, "")
			}
		})
		a.ran(t, 1)
	})

	s.run("a bad key found elsewhere than in the header is refused and not echoed", func(t *testing.T, e *env) {
		var a app
		for _, bad := range []string{strings.Repeat("k", 256), "a b", "a\r\nSet-Cookie: b", "schlüssel"} {
			e.costs(t, 0, func() {
				serve(t, e.engine(), order(bad, "1"), a.run).status(t, 400).header(t, idem.KeyHeader, "")
				do(t, e.engine(), order(bad, "1"), a.run).refused(t, idem.ErrKeyInvalid)
			})
		}
		do(t, e.engine(), order("", "1"), a.run).refused(t, idem.ErrKeyMissing)
		a.ran(t, 0)
	})

	s.run("the least length of a key can be set", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) { o.MinKey = 20 })
		for n, want := range map[int]int{19: 400, 20: 201, 255: 201, 256: 400} {
			serve(t, eng, keyed(strings.Repeat("k", n), "1"), a.run).status(t, want)
		}
	})

	s.run("a quoted key and the bare one are the same key", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := serve(t, eng, keyed(`"abc-1"`, "1"), a.run).status(t, 201)
		serve(t, eng, keyed(`abc-1`, "1"), a.run).replays(t, first)
		serve(t, eng, keyed(` "abc-1" `, "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("in strict mode a bare new one is 400", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(idem.IETF)
		first := serve(t, eng, keyed(`"abc-1"`, "1"), a.run).status(t, 201)
		serve(t, eng, keyed(`abc-2`, "1"), a.run).status(t, 400)
		serve(t, eng, keyed(`abc-1`, "1"), a.run).replays(t, first)
		serve(t, eng, keyed(`"abc-1"`, "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("the header's name is taken in any case", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := serve(t, eng, keyed("k", "1"), a.run).status(t, 201)
		for _, name := range []string{"idempotency-key", "IDEMPOTENCY-KEY", "idempotency-Key"} {
			r := order("", "1")
			r.Header = http.Header{name: {"k"}}
			serve(t, eng, r, a.run).replays(t, first)
		}
		a.ran(t, 1)
	})

	s.run("a key sent twice is 400, in one header or in two spellings", func(t *testing.T, e *env) {
		var a app
		for _, h := range []http.Header{
			{idem.KeyHeader: {"k", "k"}},
			{idem.KeyHeader: {"k"}, "idempotency-key": {"k"}},
		} {
			r := order("", "1")
			r.Header = h
			e.costs(t, 0, func() { serve(t, e.engine(), r, a.run).status(t, 400) })
		}
		a.ran(t, 0)
	})

	s.run("keys that look like nothing are keys", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		for i, key := range []string{"0", "false", "null", "#", "v1#other#key", "{}", "__proto__"} {
			first := serve(t, eng, keyed(key, "1"), a.run).status(t, 201)
			serve(t, eng, keyed(key, "1"), a.run).replays(t, first)
			a.ran(t, i+1)
		}
	})

	s.run("keys act on the methods they were given, others pass", func(t *testing.T, e *env) {
		var a app
		r := keyed("k", "1")
		r.Method = http.MethodDelete
		e.costs(t, 0, func() {
			if got := serve(t, e.engine(), r, a.run).status(t, 201); got.Header.Get("Idempotency-Status") != "ignored" || len(got.Header) != 2 {
				t.Errorf("got %v with header %v, want it passed, and only marked", got, got.Header)
			}
		})
		eng := e.engine(idem.Stripe)
		first := serve(t, eng, r, a.run).status(t, 201)
		serve(t, eng, r, a.run).replays(t, first)
		a.ran(t, 2)
	})
}
