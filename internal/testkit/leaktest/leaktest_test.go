package leaktest_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/testkit/leaktest"
)

const secret = "4242 4242?4242>4242"

func zipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.Bytes()
}

func deflated(s string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

// The search must be able to find each form, or finding none shows nothing.
func TestEachFormIsFound(t *testing.T) {
	t.Parallel()
	for form, text := range map[string][]byte{
		"plain":                   []byte("a " + secret + " b"),
		"hex":                     []byte("x" + strings.ToUpper(hex.EncodeToString([]byte(secret)))),
		"base64 at 0":             []byte(base64.StdEncoding.EncodeToString([]byte(secret + "b"))),
		"base64 at 1":             []byte(base64.StdEncoding.EncodeToString([]byte("a" + secret + "b"))),
		"base64url at 2":          []byte(base64.RawURLEncoding.EncodeToString([]byte("ab" + secret))),
		"gzip":                    zipped("a" + secret),
		"deflate":                 deflated(strings.Repeat("a", 99) + secret),
		"deflate in base64":       []byte(`{"B":"` + base64.StdEncoding.EncodeToString(deflated("a"+secret)) + `"}`),
		"gzip behind other bytes": append([]byte("\x1f\x8b\x08 no gzip"), zipped(secret)...),
		"gzip in base64":          []byte(base64.StdEncoding.EncodeToString(zipped(secret))),
		"base64 in gzip":          zipped(base64.StdEncoding.EncodeToString([]byte("ab" + secret))),
		"gzip in base64 in gzip":  zipped(base64.URLEncoding.EncodeToString(zipped(secret))),
	} {
		items := []map[string]types.AttributeValue{{"pk": &types.AttributeValueMemberS{Value: "1"}, "m": &types.AttributeValueMemberM{
			Value: map[string]types.AttributeValue{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: text}}}},
		}}}
		if found := leaktest.Find(leaktest.Texts(items), secret); len(found) == 0 {
			t.Errorf("%s: nothing found", form)
		}
	}
	if found := leaktest.Find([][]byte{[]byte("nothing"), zipped("nothing")}, secret); len(found) != 0 {
		t.Errorf("in nothing, found %v", found)
	}
}

func TestSeamOfTwoItems(t *testing.T) {
	t.Parallel()
	half := func(pk, s string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "b": &types.AttributeValueMemberB{Value: []byte(s)}}
	}
	for form, body := range map[string]string{"plain": secret, "deflate": string(deflated(secret))} {
		items := []map[string]types.AttributeValue{half("k#o#1", body[9:]), half("k#o#0", body[:9]), half("k", "before")}
		if found := leaktest.Find(leaktest.Texts(items), secret); len(found) == 0 {
			t.Errorf("%s: nothing found", form)
		}
	}
}
