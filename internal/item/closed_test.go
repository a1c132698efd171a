package item

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/itemjson"
	"github.com/samekey/samekey/seal"
)

// testProvider has the keys a and b.
func testProvider(t failer, current string) *seal.Static {
	p, err := seal.NewStatic(current, map[string][]byte{"a": bytes.Repeat([]byte("a"), 32), "b": bytes.Repeat([]byte("b"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type failer interface{ Fatal(...any) }

// sealedItem is the item of r, whose body lies in the record itself, and whose
// contents are sealed. It changes r.Seal.
func sealedItem(t failer, s *seal.Sealer, r *store.Record) Map {
	key, err := s.Key(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r.Seal = NewSeal(key)
	v := Values{Box: NewBox(key, r)}
	if r.Input != nil {
		body, zipped := packed(r.Input.Body)
		it := encodedWith(&v, r)
		it[AttrRequest] = v.Input(r.Input, nil, body, zipped)
		return it
	}
	return encodedWith(&v, r)
}

func encodedWith(v *Values, r *store.Record) Map {
	if r.Response == nil {
		return v.Encode(r, nil)
	}
	body, zipped := packed(r.Response.Body)
	return v.Encode(r, v.Response(r.Response, r.Overflow, body, zipped))
}

var withoutSeal = cmp.Options{cmpopts.IgnoreFields(store.Record{}, "Seal"), cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })}

// Whatever a record holds comes back, with any process's sealer.
func TestSealedRecordRoundTrip(t *testing.T) {
	t.Parallel()
	mine := seal.New(testProvider(t, "a"))
	rapid.Check(t, func(t *rapid.T) {
		want := anySealable(t)
		it := sealedItem(t, mine, want.Clone())
		for name, s := range map[string]*seal.Sealer{"the same": mine, "another": seal.New(testProvider(t, "b"))} {
			got, err := Decode(it)
			if err == nil {
				err = Unseal(context.Background(), s, got)
			}
			if err != nil {
				t.Fatalf("with %s sealer: %v", name, err)
			}
			if diff := cmp.Diff(want, got, withoutSeal); diff != "" {
				t.Fatalf("with %s sealer (-want +got):\n%s", name, diff)
			}
		}
	})
}

func anySealable(t *rapid.T) *store.Record {
	r := anyRecord(t)
	if rapid.Bool().Draw(t, "has a request") {
		r.Input = &store.Input{
			Method: "POST", Path: rapid.SampledFrom([]string{"/", "/caf\xe9", "/rides/é"}).Draw(t, "path"), Query: "a=\xff<",
			Identity: store.Identity{Kind: "jwt", Subject: "zoë"}, Snapshot: []byte{0, 1}, Body: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "request"),
			Header: map[string][]string{"X": {"1", "caf\xe9"}},
		}
	}
	if r.Response != nil && rapid.Bool().Draw(t, "large") {
		r.Response.Body = nil
		r.Overflow = &store.Overflow{Owner: "o", First: 3, Count: 2, Length: 9, Zipped: true, SHA256: [32]byte{1}, Sealed: true}
	}
	return r
}

// A closed record shows what its readers without a key need, and no contents.
func TestClosedRecordHasNoContents(t *testing.T) {
	t.Parallel()
	s := seal.New(testProvider(t, "a"))
	rapid.Check(t, func(t *rapid.T) {
		want := anySealable(t)
		got, err := Decode(sealedItem(t, s, want.Clone()))
		if err != nil {
			t.Fatal(err)
		}
		want.Scope = ""
		for i := range want.Phases {
			if want.Phases[i].Result != nil {
				want.Phases[i].Result = []byte{}
			}
		}
		for name, job := range want.Jobs {
			job.Args = nil
			want.Jobs[name] = job
		}
		if want.Input != nil {
			want.Input = &store.Input{}
		}
		if want.Response != nil {
			want.Response, want.Overflow = &store.Response{}, nil
		}
		if diff := cmp.Diff(want, got, withoutSeal); diff != "" {
			t.Fatalf("closed (-want +got):\n%s", diff)
		}
		if err := Unseal(context.Background(), nil, got); SealOf(got).closed != nil && !errors.Is(err, store.ErrSealed) {
			t.Fatalf("without a sealer, Unseal returned %v", err)
		}
	})
}

// full is a record with every kind of sealed part.
func full() *store.Record {
	return &store.Record{
		PK: "v1##pk", State: store.Done, Owner: "o", Ver: 3, Fingerprint: "f", ID: "id", Keep: store.KeepJobs, Until: time.Unix(1<<31, 0),
		Created: time.UnixMilli(1), Run: time.UnixMilli(1), Scope: "jwt:zoë", Route: "/rides",
		Phases: []store.Phase{{Name: "one", Result: []byte(`{"n":1}`)}, {Name: "two", Result: []byte(`{"n":2}`)}, {Name: "three"}},
		Jobs: map[string]store.Job{
			"0.0": {Kind: "mail", Args: []byte(`{"to":"zoë"}`), Group: "g"}, "1.0": {Kind: "mail", Args: []byte(`{"to":"ann"}`)},
		},
		Input:    &store.Input{Method: "POST", Path: "/rides", Body: []byte(`{"amount":5}`)},
		Response: &store.Response{Status: 201, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`{"id":7}`)},
	}
}

// reads returns what a reader makes of an item.
func reads(t failer, s *seal.Sealer, it Map) (*store.Record, error) {
	r, err := Decode(it)
	if err == nil {
		err = Unseal(context.Background(), s, r)
	}
	return r, err
}

// binaries calls fn with each sealed part of an item, and a function that replaces it.
func binaries(it Map, fn func(path string, b []byte, replace func([]byte))) {
	var walk func(path string, v Value, set func(Value))
	walk = func(path string, v Value, set func(Value)) {
		switch v := v.(type) {
		case *types.AttributeValueMemberB:
			fn(path, v.Value, func(b []byte) { set(bin(b)) })
		case *types.AttributeValueMemberM:
			for _, name := range slices.Sorted(maps.Keys(v.Value)) {
				walk(path+"."+name, v.Value[name], func(x Value) { v.Value[name] = x })
			}
		case *types.AttributeValueMemberL:
			for i := range v.Value {
				walk(path+"."+strconv.Itoa(i), v.Value[i], func(x Value) { v.Value[i] = x })
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(it)) {
		walk(name, it[name], func(x Value) { it[name] = x })
	}
}

// No byte of a sealed record can be altered, and no part truncated or
// emptied.
func TestAlteredCiphertext(t *testing.T) {
	t.Parallel()
	s := seal.New(testProvider(t, "a"))
	fresh := func() Map { return sealedItem(t, s, full()) }
	if _, err := reads(t, s, fresh()); err != nil {
		t.Fatalf("the item to alter is corrupt already: %v", err)
	}
	it, tried := fresh(), 0
	binaries(it, func(path string, b []byte, replace func([]byte)) {
		refused := func(what string, with []byte) {
			t.Helper()
			replace(with)
			tried++
			if r, err := reads(t, s, it); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s, %s: read %+v, %v", path, what, r, err)
			}
			replace(b)
		}
		for at := range b {
			with := bytes.Clone(b)
			with[at] ^= 0x20
			refused("byte "+strconv.Itoa(at), with)
		}
		refused("truncated", b[:len(b)-1])
		refused("emptied", []byte{})
		refused("longer", append(bytes.Clone(b), 0))
	})
	if tried < 400 {
		t.Errorf("%d alterations tried: something is wrong with this test", tried)
	}
	if _, err := reads(t, s, it); err != nil {
		t.Errorf("unaltered again: %v", err)
	}
}

// No sealed part opens in the place of another, be it of the same
// record, of another, or of another operation under the same key.
func TestSwappedCiphertext(t *testing.T) {
	t.Parallel()
	s := seal.New(testProvider(t, "a"))
	others := map[string]func(*store.Record){
		"the same record": func(*store.Record) {},
		"another key":     func(r *store.Record) { r.PK = "v1##other" },
		"an earlier life": func(r *store.Record) { r.ID = "earlier" },
	}
	for name, change := range others {
		r := full()
		change(r)
		parts := make(map[string][]byte)
		binaries(sealedItem(t, s, r), func(path string, b []byte, _ func([]byte)) { parts[path] = b })
		it := sealedItem(t, s, full())
		binaries(it, func(path string, b []byte, replace func([]byte)) {
			for from, part := range parts {
				if from == path && name == "the same record" || path == "seal.w" {
					continue // the part itself; all have the same data key
				}
				replace(part)
				if r, err := reads(t, s, it); !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("%s of %s in the place of %s: read %+v, %v", from, name, path, r, err)
				}
				replace(b)
			}
		})
	}
}

// What a part belongs to can't be renamed around it.
func TestRenamedAround(t *testing.T) {
	t.Parallel()
	s := seal.New(testProvider(t, "a"))
	str := func(s string) Value { return &types.AttributeValueMemberS{Value: s} }
	m := func(v Value) Map { return v.(*types.AttributeValueMemberM).Value }
	for what, spoil := range map[string]func(Map){
		"its key":       func(it Map) { it[AttrPK] = str("v1##other") },
		"its operation": func(it Map) { it[AttrID] = str("other") },
		"a phase": func(it Map) {
			it[AttrPhases].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberL).Value[0] = str("two")
		},
		"a job's kind":   func(it Map) { m(m(it[AttrJobs])["0.0"])[jobKind] = str("refund") },
		"a job's group":  func(it Map) { m(m(it[AttrJobs])["0.0"])[jobGroup] = str("h") },
		"a job":          func(it Map) { m(it[AttrJobs])["2.0"] = m(it[AttrJobs])["0.0"] },
		"the algorithm":  func(it Map) { m(it[AttrSeal])[sealAlgorithm] = str("none") },
		"no wrapped key": func(it Map) { delete(m(it[AttrSeal]), sealWrapped) },
		"no data key":    func(it Map) { delete(it, AttrSeal) },
		"a result that was not": func(it Map) {
			l := it[AttrPhases].(*types.AttributeValueMemberL).Value
			l[2].(*types.AttributeValueMemberL).Value = append(l[2].(*types.AttributeValueMemberL).Value, bin([]byte("x")))
		},
	} {
		it := sealedItem(t, s, full())
		spoil(it)
		if r, err := reads(t, s, it); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: read %+v, %v", what, r, err)
		}
	}
}

// With Required, no plain part passes for a sealed one.
func TestRequiredRefusesPlainContents(t *testing.T) {
	t.Parallel()
	s := seal.New(testProvider(t, "a"), func(o *seal.Options) { o.Required = true })
	plain := encodedWith(&Values{}, full())
	var v Values
	plain[AttrRequest] = v.Input(full().Input, nil, []byte("x"), false)
	if _, err := reads(t, s, sealedItem(t, s, full())); err != nil {
		t.Errorf("a sealed record: %v", err)
	}
	if _, err := reads(t, s, plain); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a plain record: %v", err)
	}
	for _, name := range []string{AttrScope, AttrPhases, AttrJobs, AttrRequest, AttrResp} {
		it := sealedItem(t, s, full())
		it[name] = plain[name]
		if r, err := reads(t, s, it); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("plain %s: read %+v, %v", name, r, err)
		}
		r, err := Decode(it)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Table{Seal: s}.Args(t.Context(), r, "0.0")
		if want := name == AttrJobs; errors.Is(err, store.ErrCorrupt) != want {
			t.Errorf("plain %s: Args returned %v", name, err)
		}
	}
	bare := full()
	bare.State, bare.Scope, bare.Phases, bare.Jobs, bare.Input, bare.Response = store.Open, "", nil, nil, nil, nil
	if _, err := reads(t, s, encodedWith(&Values{}, bare)); err != nil {
		t.Errorf("a record without contents: %v", err)
	}
}

// Golden items: records that this release has written are read by later releases.
func TestKnownItems(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/sealed-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d items, %v", len(files), err)
	}
	s := seal.New(testProvider(t, "b")) // the key has been rotated since
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var it itemjson.Item
		if err := json.Unmarshal(text, &it); err != nil {
			t.Fatal(err)
		}
		got, err := reads(t, s, Map(it))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want := full()
		if filepath.Base(file) == "sealed-large.json" {
			want.Response.Body = nil
			want.Overflow = &store.Overflow{Owner: "o", First: 3, Count: 2, Length: 900_000, Zipped: true, SHA256: [32]byte{1, 2, 3}, Sealed: true}
		}
		if diff := cmp.Diff(want, got, withoutSeal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if key := SealOf(got).KeyID(); key != "a" {
			t.Errorf("%s: the key is %q", file, key)
		}
	}
}

// The companions of sealed-large.json: a part of a body opens at its place only.
func TestKnownChunks(t *testing.T) {
	t.Parallel()
	var large itemjson.Item
	var chunks []itemjson.Item
	for file, into := range map[string]any{"testdata/sealed-large.json": &large, "testdata/chunks.json": &chunks} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	r, err := reads(t, seal.New(testProvider(t, "b")), Map(large))
	if err != nil || len(chunks) != r.Overflow.Count {
		t.Fatalf("%d chunks of %+v, %v", len(chunks), r, err)
	}
	box := NewBox(SealOf(r).Key(), r)
	for i, want := range []string{"the first part of a body", "and its second part"} {
		sealed, there := Chunk(Map(chunks[i]))
		if got, err := box.OpenChunk(sealed, r.Overflow, i); !there || err != nil || string(got) != want {
			t.Errorf("part %d is %q, %v", i, got, err)
		}
		if got, err := box.OpenChunk(sealed, r.Overflow, 1-i); err == nil {
			t.Errorf("part %d opens in the place of the other: %q", i, got)
		}
	}
}

// Contents open with the record's data key, from a sealer or from a caller that has it. Without it they
// stay closed, and nothing passes for it.
func TestDataKeyOfARecord(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), seal.New(testProvider(t, "a"))
	it, plain := sealedItem(t, s, full()), encodedWith(&Values{}, full())
	for _, name := range []string{AttrScope, AttrPhases, AttrJobs, AttrRequest, AttrResp} {
		one := maps.Clone(plain)
		one[name] = it[name]
		if _, err := Decode(one); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("sealed %s without a key: %v", name, err)
		}
	}
	for _, name := range []string{sealKey, sealAlgorithm, sealWrapped} {
		one := maps.Clone(it)
		one[AttrSeal] = part(it[AttrSeal], name, nil)
		if _, err := Decode(one); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("a key without %s: %v", name, err)
		}
	}
	opened, err := reads(t, s, it)
	if err != nil {
		t.Fatal(err)
	}
	key := *SealOf(opened)
	for name, tt := range map[string]struct {
		known *Seal
		want  error
	}{
		"the caller's":   {&key, nil},
		"closed":         {&Seal{keyID: key.keyID, wrapped: key.wrapped}, store.ErrSealed},
		"by another key": {&Seal{keyID: "b", wrapped: key.wrapped, key: key.key}, store.ErrSealed},
		"another":        {&Seal{keyID: key.keyID, wrapped: []byte("w"), key: key.key}, store.ErrSealed},
	} {
		closed, err := Decode(it)
		if err != nil {
			t.Fatal(err)
		}
		if err := Unseal(ctx, nil, closed, tt.known); !errors.Is(err, tt.want) || (err == nil) != (closed.Scope == full().Scope) {
			t.Errorf("with a data key that is %s: %+v, %v, want %v", name, closed, err, tt.want)
		}
	}
	want := string(full().Jobs["0.0"].Args)
	for name, tt := range map[string]struct {
		it     Map
		sealer *seal.Sealer
		kind   string
		want   error
	}{
		"sealed": {it, s, "mail", nil}, "plain": {plain, s, "mail", nil}, "without a key": {it, nil, "mail", store.ErrSealed}, "another kind's": {it, s, "refund", store.ErrCorrupt},
	} {
		r, err := Decode(tt.it)
		if err != nil {
			t.Fatal(err)
		}
		job := r.Jobs["0.0"]
		job.Kind = tt.kind
		r.Jobs["0.0"] = job
		if args, err := (Table{Seal: tt.sealer}).Args(ctx, r, "0.0"); !errors.Is(err, tt.want) || err == nil && string(args) != want {
			t.Errorf("%s: args are %s, %v", name, args, err)
		}
	}
}
