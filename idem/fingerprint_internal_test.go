package idem

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem/store"
)

func base() Request {
	return Request{
		Method: "POST", Path: "/orders", Query: "a=1&b=2", Body: []byte(`{"a":1}`),
		Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer 1"}, "Stripe-Account": {"acct_1"}},
	}
}

func fingerprintOf(t testing.TB, f Fingerprint, r Request) string {
	t.Helper()
	digest, err := f.digest(&r)
	if err != nil {
		t.Fatal(err)
	}
	fp, _ := f.sign(digest)
	return hex.EncodeToString(fp[:])
}

// form makes a request a multipart form with one field, which ends with a boundary.
func form(kind, boundary, field, value, end string) func(*Request) {
	return func(r *Request) {
		r.Header.Set("Content-Type", kind+"; boundary="+boundary)
		r.Body = []byte("--" + boundary + "\r\nContent-Disposition: form-data; name=" + field + "\r\n\r\n" + value + "\r\n--" + end + "--\r\n")
	}
}

// Two forms that can't be read are two requests.
func TestBrokenFormsDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, body := range []string{
		"", "--x", "--y--", "--x\r\n\r\n1", "--x\r\n\r\n2", "--x\r\nno header\r\n\r\n1\r\n--x--", "--x\r\nno header\r\n\r\n2\r\n--x--", "--x\r\n\r\n1\r\n--x--\r\n",
	} {
		r := base()
		r.Header, r.Body = http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, []byte(body)
		fp := fingerprintOf(t, Fingerprint{}, r)
		if other, same := seen[fp]; same {
			t.Errorf("%q is %q", body, other)
		}
		seen[fp] = body
	}
}

func TestFingerprintParts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		f      Fingerprint
		change func(*Request)
		same   bool
	}{
		"nothing":                             {Fingerprint{}, func(*Request) {}, true},
		"method":                              {Fingerprint{}, func(r *Request) { r.Method = "PUT" }, false},
		"path":                                {Fingerprint{}, func(r *Request) { r.Path = "/orders/1" }, false},
		"query":                               {Fingerprint{}, func(r *Request) { r.Query = "a=1&b=3" }, false},
		"query in another order":              {Fingerprint{}, func(r *Request) { r.Query = "b=2&a=1" }, true},
		"query with other escapes":            {Fingerprint{}, func(r *Request) { r.Query = "a=%31&b=2" }, true},
		"values of one name in another order": {Fingerprint{}, func(r *Request) { r.Query = "a=2&a=1" }, false},
		"body":                                {Fingerprint{}, func(r *Request) { r.Body = []byte(`{"a":2}`) }, false},
		"a byte moves from path to query":     {Fingerprint{}, func(r *Request) { r.Path, r.Query = "/orders?a=1&b=2", "" }, false},
		"white space":                         {Fingerprint{}, func(r *Request) { r.Body = []byte(`{ "a":1}`) }, false},
		"white space, canonical":              {Fingerprint{CanonicalJSON: true}, func(r *Request) { r.Body = []byte("{ \"a\" :\n1}") }, true},
		"white space, canonical, not JSON":    {Fingerprint{CanonicalJSON: true}, func(r *Request) { r.Header.Set("Content-Type", "text/plain") }, false},
		"credentials (R17)":                   {Fingerprint{}, func(r *Request) { r.Header.Set("Authorization", "Bearer 2") }, true},
		"tracing (R17)":                       {Fingerprint{}, func(r *Request) { r.Header.Set("Traceparent", "00-1") }, true},
		"a retry's sign (R17)":                {Fingerprint{}, func(r *Request) { r.Header.Set("Retry-Attempt", "1") }, true},
		"key and scope":                       {Fingerprint{}, func(r *Request) { r.Key, r.Scope = "k", "s" }, true},
		"a header that isn't chosen":          {Fingerprint{}, func(r *Request) { r.Header.Set("Stripe-Account", "acct_2") }, true},
		"a header that is":                    {Fingerprint{Headers: []string{"stripe-account"}}, func(r *Request) { r.Header.Set("Stripe-Account", "acct_2") }, false},
		"a chosen header in another case":     {Fingerprint{Headers: []string{"stripe-account"}}, func(r *Request) { r.Header = http.Header{"stripe-account": {"acct_1"}} }, true},
		"a value moves to another header":     {Fingerprint{Headers: []string{"A", "B"}}, func(r *Request) { r.Header = http.Header{"B": {"x"}} }, false},
		"a func's choice":                     {Fingerprint{Func: func(r *Request) ([]byte, error) { return r.Body[:3], nil }}, func(r *Request) { r.Path = "/x" }, true},
		"what a func looks at":                {Fingerprint{Func: func(r *Request) ([]byte, error) { return []byte(r.Path), nil }}, func(r *Request) { r.Path = "/x" }, false},
		"a query with a broken escape":        {Fingerprint{}, func(r *Request) { r.Query = "a=%zz" }, false},
		"white space, canonical, a kind of JSON": {Fingerprint{CanonicalJSON: true}, func(r *Request) {
			r.Body = []byte("{ \"a\" :\n1}")
		}, true},
		"a form, submitted again":   {Fingerprint{}, form("multipart/form-data", "y", "a", "1", "y"), true},
		"a form, cut off":           {Fingerprint{}, form("multipart/form-data", "y", "a", "1", "x"), false},
		"a form with another field": {Fingerprint{}, form("multipart/form-data", "x", "b", "1", "x"), false},
		"a form with another value": {Fingerprint{}, form("multipart/form-data", "x", "a", "2", "x"), false},
		"a form, of another path":   {Fingerprint{}, func(r *Request) { form("multipart/form-data", "x", "a", "1", "x")(r); r.Path = "/" }, false},
		"a form without a boundary": {Fingerprint{}, func(r *Request) {
			form("multipart/form-data", "y", "a", "1", "y")(r)
			r.Header.Set("Content-Type", "multipart/form-data")
		}, false},
		"parts of another kind count as sent":  {Fingerprint{}, form("multipart/mixed", "y", "a", "1", "y"), false},
		"20 six megabytes count as bytes only": {Fingerprint{CanonicalJSON: true}, func(r *Request) { r.Body = bytes.Repeat([]byte("["), 6<<20) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := base(), base()
			switch {
			case strings.Contains(name, "kind of JSON"):
				a.Header.Set("Content-Type", "application/problem+json")
				b.Header.Set("Content-Type", "application/problem+json")
			case strings.HasPrefix(name, "a form"):
				form("multipart/form-data", "x", "a", "1", "x")(&a)
			case strings.HasPrefix(name, "parts of another kind"):
				form("multipart/mixed", "x", "a", "1", "x")(&a)
			}
			if strings.Contains(name, "moves to another header") {
				a.Header = http.Header{"A": {"x"}}
			}
			tt.change(&b)
			if same := fingerprintOf(t, tt.f, a) == fingerprintOf(t, tt.f, b); same != tt.same {
				t.Errorf("same = %t, want %t", same, tt.same)
			}
		})
	}
}

// A body counts to its last byte, however large it is and whatever its form.
func TestFingerprintCoversTheWholeBody(t *testing.T) {
	t.Parallel()
	for form, tt := range map[string]struct {
		f             Fingerprint
		media         string
		before, after string // of the content, whose last byte differs
		unit          string // of the content
	}{
		"bytes":            {f: Fingerprint{}, media: "application/octet-stream"},
		"canonical JSON":   {f: Fingerprint{CanonicalJSON: true}, media: "application/json", before: `{"b":1,"a":"`, after: `"}`},
		"a long list":      {f: Fingerprint{CanonicalJSON: true}, media: "application/json", before: `[`, after: `]`, unit: "12345678, 12345,"},
		"not quite JSON":   {f: Fingerprint{CanonicalJSON: true}, media: "application/json", before: `{`},
		"a form":           {f: Fingerprint{}, media: "application/x-www-form-urlencoded", before: "b=1&a="},
		"a multipart form": {f: Fingerprint{}, media: "multipart/form-data; boundary=x", before: "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n", after: "\r\n--x--\r\n"},
		"with a secret":    {f: Fingerprint{Secrets: []Secret{{"s", []byte("0123456789abcdef")}}}, media: "text/plain"},
		"by a func":        {f: Fingerprint{Func: func(r *Request) ([]byte, error) { return r.Body, nil }}, media: "text/plain"},
	} {
		for _, size := range []int{100 << 10, 5 << 20} {
			if tt.f.CanonicalJSON && size > 1<<20 {
				continue // parsing it takes seconds
			}
			content := bytes.Repeat([]byte(cmp.Or(tt.unit, "0123456789abcde+")), size/16)
			of := func(last string, same bool) string {
				r := base()
				r.Header = http.Header{"Content-Type": {tt.media}}
				body := slices.Concat([]byte(tt.before), content, []byte(last+tt.after))
				if r.Body = body; same {
					r.Body, r.Same = []byte("another each time "+last), body
				}
				return fingerprintOf(t, tt.f, r)
			}
			if of("1", false) == of("2", false) {
				t.Errorf("%s of %d bytes: the last byte doesn't count", form, size)
			}
			if tt.f.Func == nil && size < 1<<20 && of("1", true) == of("2", true) {
				t.Errorf("%s of %d bytes, from Request.Same: the last byte doesn't count", form, size)
			}
		}
	}
}

// Raw and decoded forms of a query, from different gateways, are the same query.
func TestCanonicalQuery(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":              "",
		"b=2&a=1":       "a=1&b=2",
		"a=1;b=2":       "a=1%3Bb%3D2!a=1;b=2", // not the pair that decodes to the same
		"a=1%3Bb%3D2":   "a=1%3Bb%3D2",
		"a=x+y&a=%zz":   "a=x+y&a=%25zz!a=%zz",
		"a=x%20y&a=%zz": "a=x+y&a=%25zz!a=%zz",
		"a&&b=":         "a=&b=",
		"%zz=1":         "%25zz=1!%zz=1",
		"b=%yy&a=%zz":   "a=%25zz&b=%25yy!a=%zz&b=%yy",
		"a=%zz&b=%yy":   "a=%25zz&b=%25yy!a=%zz&b=%yy",
	} {
		if got := canonicalQuery(raw); got != want {
			t.Errorf("%q became %q, want %q", raw, got, want)
		}
	}
}

func TestFingerprintFuncError(t *testing.T) {
	t.Parallel()
	down := errors.New("no amount")
	f := Fingerprint{Func: func(*Request) ([]byte, error) { return nil, down }}
	r := base()
	if _, err := f.digest(&r); !errors.Is(err, ErrRequest) || !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}

func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		want string // "" = no canonical form
	}{
		"members are sorted":               {`{"b":1,"a":{"d":[1, 2],"c":null}}`, `{"a":{"c":null,"d":[1,2]},"b":1}`},
		"escapes are one form":             {`{"\u0061":"\u00e4\/"}`, `{"a":"ä/"}`},
		"big numbers stay apart":           {`[12345678901234567890]`, `[12345678901234567890]`},
		"so do their spellings":            {`[1.0, 1e0, 1]`, `[1.0,1e0,1]`},
		"surrogate pairs":                  {`"\ud83d\ude00"`, `"😀"`},
		"a scalar":                         {` true `, `true`},
		"__proto__ is a member like any":   {`{"__proto__":{}}`, `{"__proto__":{}}`},
		"100 deep":                         {strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat("[", 100) + strings.Repeat("]", 100)},
		"repeated members have none":       {`{"a":1,"a":2}`, ""},
		"repeated in another case neither": {`{"amount":1,"Amount":2}`, ""},
		"repeated by a Kelvin sign":        {`{"k":1,"\u212a":2}`, ""},
		"repeated by escape neither":       {`{"a":1,"\u0061":2}`, ""},
		"lone surrogates neither":          {`"\ud800"`, ""},
		"invalid UTF-8 neither":            {"\"\xff\"", ""},
		"two values neither":               {`{} {}`, ""},
		"trailing bytes neither":           {`{}x`, ""},
		"a cut-off body neither":           {`{"a":`, ""},
		"an empty body neither":            {``, ""},
		"200 levels and a value":           {strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200), strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200)},
		"201 levels neither":               {strings.Repeat("[", 201) + "1" + strings.Repeat("]", 201), ""},
		"a cut-off name neither":           {`{"a":1,`, ""},
		"a name that is a number neither":  {`{1:2}`, ""},
		"a cut-off array neither":          {`[[1,2`, ""},
		"a thousand deep neither":          {strings.Repeat("[", 1000) + strings.Repeat("]", 1000), ""},
		"a closing bracket alone neither":  {`]`, ""},
		"mixed brackets neither":           {`[}`, ""},
		"a replacement character, neither": {`"�"`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := CanonicalJSON([]byte(tt.in))
			if ok != (tt.want != "") || ok && string(got) != tt.want {
				t.Errorf("got %s, %t; want %s", got, ok, tt.want)
			}
		})
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":2}`, `[1.0,"x"]`, `"\ud800"`, `{"a":1,"a":2}`, `]`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		canonical, ok := CanonicalJSON(body)
		if !ok {
			return
		}
		if !json.Valid(body) || !json.Valid(canonical) {
			t.Fatalf("%q became %q", body, canonical)
		}
		again, ok := CanonicalJSON(canonical)
		if !ok || !bytes.Equal(again, canonical) {
			t.Fatalf("%q isn't stable: %q", canonical, again)
		}
		var indented bytes.Buffer
		if json.Indent(&indented, body, "", "  ") == nil {
			if spaced, ok := CanonicalJSON(indented.Bytes()); !ok || !bytes.Equal(spaced, canonical) {
				t.Fatalf("white space changed %q to %q", canonical, spaced)
			}
		}
	})
}

// A rotation of secrets must not turn honest retries away.
func TestSecretRotation(t *testing.T) {
	t.Parallel()
	older := Secret{ID: "2026-10", Key: bytes.Repeat([]byte{1}, 32)}
	newer := Secret{ID: "2026-11", Key: bytes.Repeat([]byte{2}, 32)}
	r, other := base(), base()
	other.Body = []byte("{}")
	digestOf := func(r Request) [32]byte {
		d, err := (&Fingerprint{}).digest(&r)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	record := func(f Fingerprint) *store.Record {
		fp, id := f.sign(digestOf(r))
		return &store.Record{Fingerprint: hex.EncodeToString(fp[:]), Secret: id, Scheme: f.scheme()}
	}
	unkeyed, old := record(Fingerprint{}), record(Fingerprint{Secrets: []Secret{older}})
	rotated := Fingerprint{Secrets: []Secret{newer, older}}
	if unkeyed.Fingerprint == old.Fingerprint || old.Secret != "2026-10" || record(rotated).Secret != "2026-11" {
		t.Error("the first secret doesn't key new records")
	}
	for name, held := range map[string]*store.Record{"unkeyed": unkeyed, "older secret": old, "newer secret": record(rotated)} {
		if ok, err := rotated.matches(held, &r); !ok || err != nil {
			t.Errorf("%s: an honest retry got %t, %v", name, ok, err)
		}
		if ok, err := rotated.matches(held, &other); ok || err != nil {
			t.Errorf("%s: another request got %t, %v", name, ok, err)
		}
	}
	if _, err := (&Fingerprint{Secrets: []Secret{newer}}).matches(old, &r); !errors.Is(err, ErrIncomparable) {
		t.Errorf("a secret that is gone: %v, want ErrIncomparable", err)
	}
}

// The name of a scheme is in records: it is the same for the same parts, and another for
// others.
func TestSchemes(t *testing.T) {
	t.Parallel()
	body := func(r *Request) ([]byte, error) { return r.Body, nil }
	for want, f := range map[string]Fingerprint{
		"":                   {Secrets: []Secret{{"1", bytes.Repeat([]byte{1}, 32)}}},
		"json":               {CanonicalJSON: true},
		"json +A +X-Account": {CanonicalJSON: true, Headers: []string{"a", "x-account"}},
		"+X-Account +A":      {Headers: []string{"X-Account", "A"}}, // in their order, which counts
		"func body":          {Func: body, FuncName: "body", CanonicalJSON: true},
	} {
		if got := f.scheme(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for name, f := range map[string]Fingerprint{
		"a function without a name":    {Func: body},
		"a name without a function":    {FuncName: "body"},
		"a name with a space":          {Func: body, FuncName: "the body"},
		"a long name":                  {Func: body, FuncName: strings.Repeat("x", 65)},
		"a name with a DEL":            {Func: body, FuncName: "a\x7f"},
		"a name with an umlaut":        {Func: body, FuncName: "k\u00f6rper"},
		"no header":                    {Headers: []string{"a b"}},
		"its own scheme":               {Known: []Fingerprint{{}}},
		"a scheme twice":               {CanonicalJSON: true, Known: []Fingerprint{{}, {Secrets: nil}}},
		"two functions of one name":    {Func: body, FuncName: "body", Known: []Fingerprint{{Func: body, FuncName: "body"}}},
		"a known one's known":          {Known: []Fingerprint{{CanonicalJSON: true, Known: []Fingerprint{{Headers: []string{"A"}}}}}},
		"a known one's secret":         {Known: []Fingerprint{{CanonicalJSON: true, Secrets: []Secret{{"1", bytes.Repeat([]byte{1}, 32)}}}}},
		"a known one's credentials":    {Known: []Fingerprint{{Headers: []string{"Authorization"}}}},
		"a known one without its name": {Known: []Fingerprint{{Func: body}}},
	} {
		if err := f.validate(KeyHeader); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for _, f := range []Fingerprint{
		{Known: []Fingerprint{{CanonicalJSON: true}, {Headers: []string{"A"}}}, Secrets: []Secret{{"1", make([]byte, 16)}}},
		{Func: body, FuncName: "!~" + strings.Repeat("x", 62)},
	} {
		if err := f.validate(KeyHeader); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// A record is compared by its own scheme, whichever of the known ones that is.
func TestKnownSchemes(t *testing.T) {
	t.Parallel()
	withoutQuery := Fingerprint{FuncName: "path", Func: func(r *Request) ([]byte, error) { return []byte(r.Path), nil }}
	f := Fingerprint{Known: []Fingerprint{{CanonicalJSON: true}, withoutQuery}}
	r, other := base(), base()
	other.Query = "c=3"
	held := &store.Record{Scheme: "func path", Fingerprint: fingerprintOf(t, withoutQuery, r)}
	if same, err := f.matches(held, &other); err != nil || !same {
		t.Errorf("without its query, the request is the same: %t, %v", same, err)
	}
	other.Path = "/"
	if same, err := f.matches(held, &other); err != nil || same {
		t.Errorf("another path is another request: %t, %v", same, err)
	}
}

// A former function that fails says nothing about the request: it was another one for
// which it succeeded, or it fails by chance.
func TestFormerFuncThatFails(t *testing.T) {
	t.Parallel()
	fails := func(*Request) ([]byte, error) { return nil, errors.New("down") }
	f, r := Fingerprint{Known: []Fingerprint{{Func: fails, FuncName: "fails"}}}, base()
	if _, err := f.matches(&store.Record{Scheme: "func fails"}, &r); !errors.Is(err, ErrIncomparable) {
		t.Errorf("got %v, want ErrIncomparable", err)
	}
}

// The adapter's Same replaces the body and is treated like a body.
func TestSameInPlaceOfTheBody(t *testing.T) {
	t.Parallel()
	digest := func(f Fingerprint, body, same string) [32]byte {
		r := &Request{Method: "POST", Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}}}
		if same != "" {
			r.Same = []byte(same)
		}
		d, err := f.digest(r)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plain, canonical := Fingerprint{}, Fingerprint{CanonicalJSON: true}
	for name, tt := range map[string]struct {
		a, b [32]byte
		same bool
	}{
		"other bodies":       {digest(plain, "1", "x"), digest(plain, "2", "x"), true},
		"other parts":        {digest(plain, "1", "x"), digest(plain, "1", "y"), false},
		"none, and the body": {digest(plain, "1", ""), digest(plain, "1", "x"), false},
		"by its meaning":     {digest(canonical, "1", `{"a":1,"b":2}`), digest(canonical, "2", `{"b":2, "a":1}`), true},
	} {
		if (tt.a == tt.b) != tt.same {
			t.Errorf("%s: the same %t, want %t", name, !tt.same, tt.same)
		}
	}
}

// nestedJSON has objects of depth levels, each with its members in the wrong
// order, around a string that makes it n bytes long.
func nestedJSON(depth, n int) []byte {
	before, after := strings.Repeat(`{"z":1,"b":`, depth), strings.Repeat(`,"a":2}`, depth)
	return []byte(before + `"` + strings.Repeat("x", n-len(before)-len(after)) + `"` + after)
}

// Members change places whatever they contain, as in encoding/json, which sorts
// the keys of a map.
func TestCanonicalJSONSortsAtEveryDepth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) string
	value = func(depth int) string {
		kind := r.IntN(6)
		if depth > 6 {
			kind %= 3
		}
		n := r.IntN(4)
		var parts []string
		switch kind {
		case 0:
			return fmt.Sprint(r.IntN(100))
		case 1:
			return fmt.Sprintf(`"%d<é"`, r.IntN(100))
		case 2:
			return []string{"null", "true", "1.50", "{}", "[ ]"}[r.IntN(5)]
		case 3:
			for range n {
				parts = append(parts, value(depth+1))
			}
			return "[" + strings.Join(parts, " , ") + "]"
		default:
			for i, k := range r.Perm(n) {
				parts = append(parts, fmt.Sprintf(`"%c%d" : %s`, 'a'+k, i, value(depth+1)))
			}
			return "{ " + strings.Join(parts, ",") + "}"
		}
	}
	for range 5000 {
		body := value(0)
		dec := json.NewDecoder(strings.NewReader(body))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := CanonicalJSON([]byte(body)); !ok || !bytes.Equal(got, want) {
			t.Fatalf("%s\nbecame %s\nwant   %s", body, got, want)
		}
	}
}

// A form is compared by its parts only if it is one as a whole; otherwise by its bytes.
func TestFormParts(t *testing.T) {
	t.Parallel()
	const kind = "multipart/form-data; boundary=x"
	const whole = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"
	for name, tt := range map[string]struct {
		kind, body string
		form       bool
	}{
		"a form":                   {kind, whole, true},
		"a type that is none":      {"multipart/form-data; boundary=x; a", whole, false},
		"no boundary":              {"multipart/form-data", whole, false},
		"another boundary":         {"multipart/form-data; boundary=y", whole, false},
		"cut off in a part":        {kind, whole[:52], false},
		"cut off in its header":    {kind, whole[:20], false},
		"no end":                   {kind, strings.TrimSuffix(whole, "--\r\n"), false},
		"a line that is no header": {kind, "--x\r\nno header\r\n\r\n1\r\n--x--\r\n", false},
	} {
		if form, ok := formParts(tt.kind, []byte(tt.body)); ok != tt.form || (len(form) > 0) != tt.form {
			t.Errorf("%s: %q, %t", name, form, ok)
		}
	}
}

// Records stay for days, and releases come and go meanwhile: a release that gave a request
// another key or fingerprint would carry out a retry a second time, or refuse it. So these
// texts never change.
func TestWhatRecordsHoldOutlivesARelease(t *testing.T) {
	t.Parallel()
	held := func(r Request, opt ...func(*Options)) [2]string {
		t.Helper()
		var mem MemoryStore
		r.Key, r.Identity = "a-key-of-22-characters", Identity{Kind: "jwt", Subject: "ann"}
		if _, err := New(&mem, append(opt, func(o *Options) { o.Namespace = "shop" })...).Do(t.Context(), r, func(context.Context) (Response, error) {
			return Response{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		for pk, rec := range mem.Records() {
			return [2]string{pk, rec.Fingerprint}
		}
		return [2]string{}
	}
	form, large, tenant := base(), base(), base()
	form.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	form.Body = []byte("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n")
	large.Body = slices.Repeat([]byte("x"), 1000)
	tenant.Tenant, tenant.Route = "t", "POST /orders"
	for name, tc := range map[string]struct{ got, want [2]string }{
		"default":      {held(base()), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "1d126f79f151d3628cd9c35d19a377c64aaf6c5ade9638fd934d5a6bab350e9c"}},
		"a large body": {held(large), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "4716de11d6d877a36e9a22aac30fef88b2da0e63edfb783c7f073534d2307b94"}},
		"a form":       {held(form), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "d416d70d69da0d162293f397890ca9e41d7ae99d25d22a0da6c7f8d1d9f7ba95"}},
		"a tenant":     {held(tenant), [2]string{"v1#shop#9B6gJjY2SBKd2zYnHKU9aIR9qLV7AOy51CJPYSPtHCk", "1d126f79f151d3628cd9c35d19a377c64aaf6c5ade9638fd934d5a6bab350e9c"}},
		"JSON":         {held(base(), func(o *Options) { o.Fingerprint.CanonicalJSON = true }), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "5ada354ce0aea53d3eaf88e3ced49c96432b09a24ec2cbe4b2c638957ab94a0c"}},
		"a header":     {held(base(), func(o *Options) { o.Fingerprint.Headers = []string{"Stripe-Account"} }), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "b1b5a7f30b8aff468bb825b84be0be45278ac71cf71d64262c96da313cedb431"}},
		"a secret":     {held(base(), func(o *Options) { o.Fingerprint.Secrets = []Secret{{"1", []byte("0123456789abcdef")}} }), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "9119afeeb5022b74ac85a655cdf576fdc3ff2f958112bbc6ea1b1ae9873171cb"}},
		"ACP":          {held(base(), ACP), [2]string{"v1#shop#zZFMssbpbD5O0WhHuMC08Qi6X_w9NfHgOya3sbQDZiE", "046da987fb01009e810a6876d16fe50f9fe43fe2676b3c92f419ff9f037a189a"}},
		"UCP":          {held(base(), UCP), [2]string{"v1#shop#zZFMssbpbD5O0WhHuMC08Qi6X_w9NfHgOya3sbQDZiE", "3330d7e69107f656de71834ecd6afe2fbba1256425c31283952c01642825f8c7"}},
	} {
		if tc.got != tc.want {
			t.Errorf("%q: {%q, %q}", name, tc.got[0], tc.got[1])
		}
	}
	if got, want := sentHash("operation", []byte("{}")), "b513242dc3e78196df001a4e63f80d29"; got != want {
		t.Errorf("the data of a call: %s", got)
	}
	body := `[0, -0.0, -12.50, 1e2, 1e-3, 99999999999999999999e99999999999999999999, 10e99999999999999999999, 1e-12345678901234567890]`
	if got, err := exactJSON([]byte(body)); err != nil || string(got) != "[0,0,-125e-1,1e2,1e-3,99999999999999999999e99999999999999999999,1e100000000000000000000,1e-12345678901234567890]" {
		t.Errorf("the form of numbers: %s, %v", got, err)
	}
}
