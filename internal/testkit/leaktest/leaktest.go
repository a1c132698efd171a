// Package leaktest searches items and logs for planted secrets in any form in which a
// program may have stored them. Only tests use it.
package leaktest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Planted secrets. Tests put them into requests, results and answers, and search for them
// in all other places.
const (
	Card  = "4242424242424242"
	Mail  = "planted.jane@example.com"
	Token = "tok_planted_91ab55d0"
)

// Texts returns every name, string, number and binary of items. A body may be split
// into several items, and the split may cut a secret in two. Therefore Texts also joins
// all binaries, in the order of the items' keys, and returns the joined text. Texts
// also inflates the joined text from the beginning of each binary, and returns these
// results.
func Texts(items []map[string]types.AttributeValue) [][]byte {
	var all [][]byte
	var together []byte
	var begins []int
	var walk func(v types.AttributeValue)
	fields := func(m map[string]types.AttributeValue) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			all = append(all, []byte(name))
			walk(m[name])
		}
	}
	walk = func(v types.AttributeValue) {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			all = append(all, []byte(v.Value))
		case *types.AttributeValueMemberN:
			all = append(all, []byte(v.Value))
		case *types.AttributeValueMemberB:
			all, begins = append(all, v.Value), append(begins, len(together))
			together = append(together, v.Value...)
		case *types.AttributeValueMemberM:
			fields(v.Value)
		case *types.AttributeValueMemberL:
			for _, el := range v.Value {
				walk(el)
			}
		}
	}
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, func(a, b map[string]types.AttributeValue) int { return strings.Compare(pk(a), pk(b)) })
	for _, it := range sorted {
		fields(it)
	}
	for _, begin := range begins {
		if plain := inflated(together[begin:]); len(plain) > 0 {
			all = append(all, plain)
		}
	}
	return append(all, together)
}

func pk(it map[string]types.AttributeValue) string {
	if s, ok := it["pk"].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Find returns the secrets that texts contain, each with the form in which it was
// found. The forms are plain, hexadecimal and base64 (in either alphabet, at any
// offset). Find also looks for these forms inside base64, gzip and DEFLATE, up to three
// layers deep.
func Find(texts [][]byte, secrets ...string) (found []string) {
	for _, text := range texts {
		found = append(found, find(text, secrets, "", 3)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

var base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}`)

func find(text []byte, secrets []string, within string, depth int) (found []string) {
	for _, secret := range secrets {
		for form, needles := range forms(secret) {
			if slices.ContainsFunc(needles, func(n string) bool { return bytes.Contains(text, []byte(n)) }) {
				found = append(found, secret+" "+within+form)
			}
		}
	}
	if depth == 0 {
		return found
	}
	for _, l := range layers(text) {
		found = append(found, find(l.text, secrets, within+l.form, depth-1)...)
	}
	return found
}

func forms(secret string) map[string][]string {
	digits := hex.EncodeToString([]byte(secret))
	f := map[string][]string{"plain": {secret}, "hex": {digits, strings.ToUpper(digits)}}
	for offset := range 3 {
		b := append(make([]byte, offset), secret...)
		first, end := (offset*8+5)/6, len(b)*8/6 // between these, each character encodes only bytes of the secret
		f["base64"] = append(f["base64"], base64.RawStdEncoding.EncodeToString(b)[first:end], base64.RawURLEncoding.EncodeToString(b)[first:end])
	}
	return f
}
