package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// Customer holds a key as the client sent it, and the key's scope.
type Customer struct {
	Namespace string // the namespace to search first, as in idem.Options
	Only      bool   // search no other namespace
	Key       string // may have quotes or spaces, as in a header
	Scope     string // a whole scope or a part, as in [Means]; for callers under idem.OneScope: "one" or "one:"
	Route     string // "METHOD PATH" of a request under idem.ACP or idem.UCP; else ""
}

// keys returns the keys that a text may mean: the text itself; the text without spaces
// around it; and, if the text is a header's value with a quoted key, that key.
func keys(text string) []string {
	all := []string{text}
	if trimmed := strings.Trim(text, " \t"); trimmed != text {
		all = append(all, trimmed)
	}
	if item, err := httpsfv.UnmarshalItem([]string{text}); err == nil {
		if key, ok := item.Value.(string); ok {
			all = append([]string{key}, all...)
		}
	}
	return all
}

// PK returns the partition key of the customer's record. An engine makes the partition
// key, in the same way as for a handler's requests. If no handler accepts the client's
// key, PK returns an error.
func (c Customer) PK(ctx context.Context) (string, error) {
	return newComparer(c).pk(ctx, c.Namespace, c.Key, c.Scope, c.Route)
}

type comparer struct {
	Customer
	engines map[place]*idem.Engine
	probe   *probe
}

// place holds those settings of an engine that decide which partition key a request
// gets.
type place struct {
	namespace string
	byPath    bool // the engine has the preset idem.ACP or idem.UCP
}

func newComparer(c Customer) *comparer {
	return &comparer{c, make(map[place]*idem.Engine), &probe{}}
}

// comparer.pk returns the partition key of a request with this namespace, key, scope
// (of) and route.
func (c *comparer) pk(ctx context.Context, namespace, key, of, route string) (string, error) {
	req := idem.Request{Key: key, Route: route, Method: "POST"}
	if err := whose(&req, of); err != nil {
		return "", err
	}
	at := place{namespace, route != ""}
	e := c.engines[at]
	if e == nil {
		e = idem.New(c.probe, idem.OneScope, func(o *idem.Options) {
			if at.byPath {
				idem.ACP(o)
			}
			o.Namespace, o.MinKey, o.Logger = namespace, 1, slog.New(slog.DiscardHandler)
		})
		c.engines[at] = e
	}
	do := e.Do
	if strings.Contains(key, " ") {
		req.Header = http.Header{idem.KeyHeader: {`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`}}
		req.Key, do = "", e.Serve
	}
	c.probe.pk = ""
	_, err := do(ctx, req, func(context.Context) (idem.Response, error) { return idem.Response{}, errProbe })
	if c.probe.pk == "" {
		return "", err
	}
	return c.probe.pk, nil
}

// Check returns an error if no handler accepts the client's key.
func (c Customer) Check(ctx context.Context) (err error) {
	one := newComparer(c)
	for _, key := range keys(c.Key) {
		if _, err = one.pk(ctx, "", key, scope.One, ""); err == nil {
			return nil
		}
	}
	return err
}

// FindKey finds records of the customer's key without a scan. The customer's scope may
// be a whole scope, a subject without a kind, or "" for callers under idem.OneScope. A
// subject without a kind may mean several callers, and FindKey tries all of them. If
// the scope omits the caller's issuer, FindKey may miss records that [Search] finds.
//
// FindKey first looks in the customer's namespace. Then, for each operation that waits
// for people, FindKey looks in the operation's namespace, and compares the operation's
// record with the customer. Once FindKey has found something, it stops, and returns the
// newest record first.
func FindKey(ctx context.Context, s store.Store, of Customer, waiting iter.Seq2[stream.Entry, error]) (found []*store.Record, _ error) {
	c, tried := newComparer(of), make(map[string]bool)
	try := func(namespace string) error {
		if tried[namespace] {
			return nil
		}
		tried[namespace] = true
		for _, pk := range c.named(ctx, namespace) {
			rec, err := s.Load(ctx, pk)
			if err != nil && !errors.Is(err, store.ErrSealed) {
				return err
			}
			if rec != nil {
				found = append(found, rec)
			}
		}
		newestFirst(found)
		return nil
	}
	if err := try(c.Namespace); err != nil || len(found) > 0 {
		return found, err
	}
	for one, err := range waiting {
		namespace := state.Namespace(one.PK)
		switch {
		case errors.Is(err, stream.ErrNoIndex):
			return nil, nil
		case err != nil:
			return nil, err
		case c.Only && namespace != c.Namespace:
			continue
		}
		if err := try(namespace); err != nil || len(found) > 0 {
			return found, err
		}
		rec, err := s.Load(ctx, one.PK)
		switch {
		case err != nil && !errors.Is(err, store.ErrSealed) && !errors.Is(err, store.ErrCorrupt):
			return nil, err
		case rec == nil:
			continue
		}
		if is, _ := c.compare(ctx, rec); is {
			return []*store.Record{rec}, nil
		}
	}
	return nil, nil
}

// comparer.named returns the partition keys that the customer's record may have in a
// namespace. c.Key may mean several keys, and c.Scope several callers: named combines
// each key with each caller.
func (c *comparer) named(ctx context.Context, namespace string) (pks []string) {
	for _, key := range keys(c.Key) {
		for _, of := range callers(c.Scope) {
			if pk, err := c.pk(ctx, namespace, key, of, c.Route); err == nil && !slices.Contains(pks, pk) {
				pks = append(pks, pk)
			}
		}
	}
	return pks
}

// comparer.compare reports whether a record belongs to the customer. The result known
// is false if compare can't tell, because the record's caller is sealed or erased, or
// because the key's scope includes a path that compare doesn't know.
func (c *comparer) compare(ctx context.Context, rec *store.Record) (is, known bool) {
	namespace := state.Namespace(rec.PK)
	switch {
	case c.Only && namespace != c.Namespace, rec.Scope != "" && !Means(c.Scope, rec.Scope):
		return false, true
	case c.Key == "":
		return rec.Scope != "", rec.Scope != ""
	case rec.Scope == "":
		is = slices.Contains(c.named(ctx, namespace), rec.PK)
		return is, is
	}
	routes := []string{"", rec.Route, c.Route}
	if in := rec.Input; in != nil {
		routes = append(routes, in.Method+" "+in.Path)
	}
	for _, key := range keys(c.Key) {
		for i, route := range routes {
			if slices.Contains(routes[:i], route) {
				continue
			}
			if pk, err := c.pk(ctx, namespace, key, rec.Scope, route); err == nil && pk == rec.PK {
				return true, true
			}
		}
	}
	return false, rec.Input != nil || c.Route != "" || !byPath(rec)
}

// byPath reports whether the scope of the record's key includes a path, and the
// record's route is only a pattern of this path. The path itself is in the stored
// request, which a finished record doesn't have.
func byPath(rec *store.Record) bool {
	return (rec.Scheme == "func acp" || rec.Scheme == "func ucp") && strings.Contains(rec.Route, "{")
}

// Search scans the table for the customer's records. If of.Key is "", Search finds all
// records of the caller. It returns the newest record first. If a sealed record can't
// be compared without its contents, and s has the record's data key, Search opens the
// record.
func Search(ctx context.Context, api stream.ScanAPI, s store.Store, opt ScanOptions, of Customer, since time.Time) (*Found, error) {
	c := newComparer(of)
	found, err := find(ctx, api, opt, wanted{
		Since: since, Load: s.Load, Match: func(r *store.Record) (is, known bool) { return c.compare(ctx, r) },
	})
	if err == nil {
		newestFirst(found.Records)
	}
	return found, err
}

func newestFirst(records []*store.Record) {
	slices.SortFunc(records, func(a, b *store.Record) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.PK, b.PK)) })
}

// NoCaller is the argument of [Found.Untold] after a [Search]. It describes records
// that could not be compared because the caller is erased or the path is unknown.
const NoCaller = "with an erased caller or an unknown path: if the caller is erased, give the whole --scope and --namespace, and if the path is unknown, give --key-route 'METHOD PATH'"

// kinds are the kinds of callers. A subject without a kind can't have the last kind,
// scope.One.
var kinds = []string{"jwt", "iam", "lambda", scope.Program, scope.Source, scope.One}

func isOne(text string) bool { return text[strings.LastIndexByte(text, '|')+1:] == scope.One }

// callers returns the scopes that a text may mean. If the text has a kind, the text is
// the only scope. The empty text means scope.One. A subject without a kind may have any
// kind except scope.One, so callers returns one scope for each of these kinds.
func callers(text string) (scopes []string) {
	operation, tenant, caller, ok := scope.Parse(text)
	switch {
	case isOne(text), ok && slices.Contains(kinds, caller.Kind):
		return []string{text}
	case text == "":
		return []string{scope.One}
	case ok: // the part before the colon is no kind, so the whole text is a subject
		caller.Kind += ":" + caller.Subject
	}
	for _, kind := range kinds[:len(kinds)-1] {
		scopes = append(scopes, string(scope.Append(nil, operation, tenant, store.Identity{Kind: kind, Subject: caller.Kind})))
	}
	return scopes
}

// This function copies the operation, the tenant and the caller from a scope (text) to
// r.
func whose(r *idem.Request, text string) error {
	operation, tenant, caller, ok := scope.Parse(text)
	if !ok && isOne(text) {
		operation, tenant, caller, ok = scope.Parse(text + ":")
	}
	if !ok {
		return fmt.Errorf("the scope %q has no kind: give jwt:ISSUER|SUBJECT, lambda:APIID|SUBJECT or iam:SUBJECT for an authorizer's subject; "+
			"program:NAME for the result of Options.Scope; source:NAME for a queue or another source; or the word one for idem.OneScope", text)
	}
	r.Operation, r.Tenant = operation, tenant
	switch caller.Kind {
	case scope.Program:
		r.Scope = caller.Subject
	case scope.Source:
		r.Source = caller.Subject
	case scope.One:
	default:
		r.Identity = caller
	}
	return nil
}

var errProbe = errors.New("the probe only notes the partition key")

// probe is a store that notes the partition key of a claim and refuses the claim.
type probe struct{ pk string }

func (p *probe) Claim(_ context.Context, c store.Claim) (*store.Record, error) {
	p.pk = c.Next.PK
	return nil, errProbe
}

func (*probe) Commit(context.Context, store.Commit) (*store.Record, error) { return nil, errProbe }
func (*probe) Load(context.Context, string) (*store.Record, error)         { return nil, errProbe }
