package kms_test

import (
	"strings"
	"testing"

	"github.com/samekey/samekey/kms"
)

func env(pairs ...string) func(string) string {
	m := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// Programs with the same variables open each other's data keys, whether the table is
// named by its name or by its ARN; those of another table or context don't.
func TestProgramsOfAnEnvironmentAgree(t *testing.T) {
	t.Parallel()
	var s service
	with := func(pairs ...string) *kms.Provider {
		t.Helper()
		p, err := kms.FromEnvironment(client(t, &s), env(pairs...))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	k, err := with("SAMEKEY_KMS_KEYS", current, "IDEM_TABLE", "records").Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]*kms.Provider{
		"the ARN":          with("SAMEKEY_KMS_KEYS", current, "IDEM_TABLE", "arn:aws:dynamodb:eu-central-1:123456789012:table/records"),
		"after a rotation": with("SAMEKEY_KMS_KEYS", former+",\n"+current, "IDEM_TABLE", "records"),
		"the context":      with("SAMEKEY_KMS_KEYS", current, "SAMEKEY_KMS_CONTEXT", "table=records"),
	} {
		if plain, err := p.Open(t.Context(), current, k.Wrapped); err != nil || string(plain) != string(k.Plain) {
			t.Errorf("%s: Open returned %x, %v", what, plain, err)
		}
	}
	for what, p := range map[string]*kms.Provider{
		"another table":   with("SAMEKEY_KMS_KEYS", current, "IDEM_TABLE", "others"),
		"another context": with("SAMEKEY_KMS_KEYS", current, "SAMEKEY_KMS_CONTEXT", "table=records, app=rides"),
		"another key":     with("SAMEKEY_KMS_KEYS", former, "IDEM_TABLE", "records"),
	} {
		if plain, err := p.Open(t.Context(), current, k.Wrapped); err == nil {
			t.Errorf("%s: Open returned %x", what, plain)
		}
	}
}

func TestMistakesInTheEnvironment(t *testing.T) {
	t.Parallel()
	for want, pairs := range map[string][]string{
		"SAMEKEY_KMS_KEYS is not set":       {"IDEM_TABLE", "records"},
		"SAMEKEY_KMS_KEYS: kms: New: \"ali": {"IDEM_TABLE", "records", "SAMEKEY_KMS_KEYS", "alias/records"},
		"IDEM_TABLE is not set":             {"SAMEKEY_KMS_KEYS", current},
		"SAMEKEY_KMS_CONTEXT has \"table\"": {"SAMEKEY_KMS_KEYS", current, "SAMEKEY_KMS_CONTEXT", "table"},
		"SAMEKEY_KMS_CONTEXT has \"=here\"": {"SAMEKEY_KMS_KEYS", current, "SAMEKEY_KMS_CONTEXT", "=here"},
	} {
		var s service
		p, err := kms.FromEnvironment(client(t, &s), env(pairs...))
		if p != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("of %q, FromEnvironment returned %v, %v; want %s", pairs, p, err, want)
		}
	}
	if p, err := kms.FromEnvironment(nil, env("SAMEKEY_KMS_KEYS", current, "IDEM_TABLE", "records")); p != nil || err == nil || !strings.HasPrefix(err.Error(), "kms: New: api is nil") {
		t.Errorf("without a client, FromEnvironment returned %v, %v", p, err)
	}
}
