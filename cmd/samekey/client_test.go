package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// signedAs matches the access key and the Region in a request's signature.
var signedAs = regexp.MustCompile(`Credential=(\w+)/\d+/([\w-]+)/dynamodb/`)

// bareAWS gives the test an environment without AWS settings except the
// endpoint of DynamoDB, and empty config files. It returns the paths of
// the files, and a function that returns who signed each request.
func bareAWS(t *testing.T) (config, credentials string, signers func() []string) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // a developer may have set AWS_PROFILE or an endpoint
		}
	}
	var mu sync.Mutex // list sends its requests concurrently
	var got []string
	db := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := signedAs.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
			mu.Lock()
			got = append(got, m[1]+" in "+m[2])
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(`{"Count":0,"ScannedCount":0,"Items":[]}`))
	}))
	t.Cleanup(db.Close)
	config, credentials = filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "credentials")
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": credentials,
		"AWS_ENDPOINT_URL_DYNAMODB": db.URL, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return config, credentials, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// Commands find account and Region as AWS's own tools do.
func TestOperatorFindsItsAccount(t *testing.T) {
	for name, tt := range map[string]struct {
		config, credentials string
		env                 map[string]string
		want                string // the signer; "" if nothing is sent
		code                int
		says                []string
	}{
		"a profile with its region and keys": {
			config:      "[profile shop]\nregion = eu-west-1\n",
			credentials: "[shop]\naws_access_key_id = SHOP\naws_secret_access_key = s\n[default]\naws_access_key_id = OTHER\naws_secret_access_key = s\n",
			env:         map[string]string{"AWS_PROFILE": "shop"},
			want:        "SHOP in eu-west-1",
		},
		"the environment alone": {
			env:  map[string]string{"AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"},
			want: "KEY in us-east-1",
		},
		"no region": {
			credentials: "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = s\n",
			code:        2, says: []string{"no Region", "AWS_REGION"},
		},
		"no keys": {
			env:  map[string]string{"AWS_REGION": "us-east-1"},
			code: 2, says: []string{"no credentials", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"},
		},
		"a profile that isn't there": {
			env:  map[string]string{"AWS_PROFILE": "shop", "AWS_REGION": "us-east-1"},
			code: 2, says: []string{"profile", "shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, credentials, signers := bareAWS(t)
			for path, text := range map[string]string{config: tt.config, credentials: tt.credentials} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			code, _, stderr := call(t, nil, "list", "--table", "records", "-pages", "1000")
			if code != tt.code {
				t.Errorf("code %d, want %d: %s", code, tt.code, stderr)
			}
			for _, text := range tt.says {
				if !strings.Contains(stderr, text) {
					t.Errorf("%q isn't in %q", text, stderr)
				}
			}
			if got := signers(); tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) == 0 || got[0] != tt.want) {
				t.Errorf("signed by %v, want %q", got, tt.want)
			}
		})
	}
}
