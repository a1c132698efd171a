package kms_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"

	"github.com/samekey/samekey/kms"
	"github.com/samekey/samekey/seal"
)

const (
	current = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	former  = "arn:aws:kms:eu-central-1:123456789012:key/ffff0000-12ab-34cd-56ef-1234567890ab"
	foreign = "arn:aws:kms:eu-central-1:999999999999:key/ffff0000-12ab-34cd-56ef-1234567890ab"
)

// service plays KMS, over HTTP as the client of the SDK speaks. A wrapped key is the
// JSON of wrapped.
type service struct {
	mu    sync.Mutex
	calls map[string]int
	fails string        // the error of each call
	hang  chan struct{} // calls wait for it
}

type wrapped struct {
	Key     string
	Context map[string]string
	Plain   []byte
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := r.Header.Get("X-Amz-Target")
	var in struct {
		KeyId             string
		CiphertextBlob    []byte
		EncryptionContext map[string]string
	}
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &in)
	s.mu.Lock()
	if s.calls == nil {
		s.calls = make(map[string]int)
	}
	s.calls[op]++
	fails, hang := s.fails, s.hang
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	refuse := func(code string) {
		w.Header().Set("X-Amzn-Errortype", code)
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": "played"})
	}
	if fails != "" {
		refuse(fails)
		return
	}
	switch op {
	case "TrentService.GenerateDataKey":
		plain := bytes.Repeat([]byte{7}, 32)
		blob, _ := json.Marshal(wrapped{in.KeyId, in.EncryptionContext, plain})
		_ = json.NewEncoder(w).Encode(map[string]any{"KeyId": in.KeyId, "Plaintext": plain, "CiphertextBlob": blob})
	case "TrentService.Decrypt":
		var k wrapped
		if json.Unmarshal(in.CiphertextBlob, &k) != nil || !equal(k.Context, in.EncryptionContext) {
			refuse("InvalidCiphertextException")
			return
		}
		if k.Key != in.KeyId {
			refuse("IncorrectKeyException")
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"KeyId": k.Key, "Plaintext": k.Plain})
	default:
		refuse("UnknownOperationException")
	}
}

func equal(a, b map[string]string) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// client is one of s, over HTTP.
func client(t *testing.T, s *service) *awskms.Client {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return awskms.New(awskms.Options{
		Region: "eu-central-1", BaseEndpoint: &srv.URL, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
		}),
	})
}

func provider(t *testing.T, s *service, key string, optFns ...func(*kms.Options)) *kms.Provider {
	t.Helper()
	p, err := kms.New(client(t, s), key, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func inContext(c string) func(*kms.Options) {
	return func(o *kms.Options) { o.Context = map[string]string{"table": c} }
}

func TestDataKeysAreMadeAndOpened(t *testing.T) {
	t.Parallel()
	var s service
	k, err := provider(t, &s, current, inContext("records")).Generate(t.Context())
	if err != nil || k.KeyID != current || len(k.Plain) != 32 {
		t.Fatalf("Generate returned %+v, %v", k, err)
	}
	rotated := provider(t, &s, former, inContext("records"), func(o *kms.Options) { o.Former = []string{current} })
	if plain, err := rotated.Open(t.Context(), current, k.Wrapped); err != nil || !bytes.Equal(plain, k.Plain) {
		t.Errorf("after a rotation, Open returned %x, %v", plain, err)
	}
}

// A wrapped key that was altered, or moved from another key or context, is invalid. One
// of a key that the program isn't told of is not sent to KMS.
func TestOnlyOwnKeysAreOpened(t *testing.T) {
	t.Parallel()
	var s service
	p := provider(t, &s, current, inContext("records"), func(o *kms.Options) { o.Former = []string{former} })
	k, err := p.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := provider(t, &s, current, inContext("another")).Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]struct {
		key  string
		blob []byte
	}{
		"altered":         {current, append([]byte("x"), k.Wrapped...)},
		"another key's":   {former, k.Wrapped},
		"another table's": {current, elsewhere.Wrapped},
	} {
		if plain, err := p.Open(t.Context(), try.key, try.blob); plain != nil || !errors.Is(err, seal.ErrInvalid) {
			t.Errorf("%s: Open returned %x, %v", what, plain, err)
		}
	}
	s.calls = nil
	if plain, err := p.Open(t.Context(), foreign, k.Wrapped); plain != nil || err == nil || errors.Is(err, seal.ErrInvalid) || len(s.calls) != 0 {
		t.Errorf("of a key that is not named, Open returned %x, %v after %v", plain, err, s.calls)
	}
}

// While a key can't be used, nothing is said about the record.
func TestKeyThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"AccessDeniedException", "DisabledException", "ThrottlingException", "KMSInternalException"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := service{fails: code}
			p := provider(t, &s, current)
			if k, err := p.Generate(t.Context()); err == nil || k.Plain != nil {
				t.Errorf("Generate returned %+v, %v", k, err)
			}
			if plain, err := p.Open(t.Context(), current, []byte("{}")); err == nil || errors.Is(err, seal.ErrInvalid) || plain != nil {
				t.Errorf("Open returned %x, %v", plain, err)
			}
			if _, err := seal.New(p).Key(t.Context()); !errors.Is(err, seal.ErrNoKey) {
				t.Errorf("the sealer returned %v", err)
			}
		})
	}
}

func TestCallsEnd(t *testing.T) {
	t.Parallel()
	s := service{hang: make(chan struct{})}
	p := provider(t, &s, current)
	defer close(s.hang)
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := p.Generate(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Generate returned %v", err)
	}
	if _, err := p.Open(short, current, []byte("{}")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open returned %v", err)
	}
}

func TestNewRefusesMistakes(t *testing.T) {
	t.Parallel()
	client := awskms.New(awskms.Options{Region: "eu-central-1"})
	for what, make := range map[string]func() (*kms.Provider, error){
		"no client": func() (*kms.Provider, error) { return kms.New(nil, current) },
		"no key":    func() (*kms.Provider, error) { return kms.New(client, "") },
		"an alias":  func() (*kms.Provider, error) { return kms.New(client, "alias/records") },
		"an older alias": func() (*kms.Provider, error) {
			return kms.New(client, current, func(o *kms.Options) { o.Former = []string{"alias/x"} })
		},
	} {
		if p, err := make(); p != nil || err == nil {
			t.Errorf("%s: New returned %v, %v", what, p, err)
		}
	}
}

// The bytes are Tink's: its AES-GCM without prefix opens ours, and the other way round.
func TestTinkReadsTheSameBytes(t *testing.T) {
	t.Parallel()
	var s service
	k, err := seal.New(provider(t, &s, current)).Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tink, err := subtle.NewAESGCM(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	place := seal.Context("samekey", "1", "v1##pk", "id", "answer")
	if got, err := tink.Decrypt(k.Seal([]byte("plain"), place), place); err != nil || string(got) != "plain" {
		t.Errorf("Tink opened %q, %v", got, err)
	}
	sealed, err := tink.Encrypt([]byte("plain"), place)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.Open(sealed, place); err != nil || string(got) != "plain" {
		t.Errorf("Open returned %q, %v of Tink's", got, err)
	}
}

// scripted answers by another key than it was asked for, and keeps what it was asked.
type scripted struct {
	asked []any
	left  []time.Duration
}

func (s *scripted) note(ctx context.Context, in any) {
	end, _ := ctx.Deadline()
	s.asked, s.left = append(s.asked, in), append(s.left, time.Until(end))
}

func (s *scripted) GenerateDataKey(ctx context.Context, in *awskms.GenerateDataKeyInput, _ ...func(*awskms.Options)) (*awskms.GenerateDataKeyOutput, error) {
	s.note(ctx, in)
	return &awskms.GenerateDataKeyOutput{}, nil
}

func (s *scripted) Decrypt(ctx context.Context, in *awskms.DecryptInput, _ ...func(*awskms.Options)) (*awskms.DecryptOutput, error) {
	s.note(ctx, in)
	return &awskms.DecryptOutput{KeyId: aws.String(foreign), Plaintext: make([]byte, 32)}, nil
}

// A call has five seconds, and the context that the program gave. A data key that another
// key has opened is not ours.
func TestCallsOfAProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scripted
		bound := map[string]string{"table": "records"}
		p, err := kms.New(&s, current, func(o *kms.Options) { o.Context = bound })
		if err != nil {
			t.Fatal(err)
		}
		bound["table"] = "others"
		if _, err := p.Generate(t.Context()); err != nil {
			t.Error(err)
		}
		if plain, err := p.Open(t.Context(), current, []byte("w")); plain != nil || !errors.Is(err, seal.ErrInvalid) {
			t.Errorf("Open returned %x, %v", plain, err)
		}
		want := []any{
			&awskms.GenerateDataKeyInput{KeyId: aws.String(current), KeySpec: "AES_256", EncryptionContext: map[string]string{"table": "records"}},
			&awskms.DecryptInput{KeyId: aws.String(current), CiphertextBlob: []byte("w"), EncryptionContext: map[string]string{"table": "records"}},
		}
		if !reflect.DeepEqual(want, s.asked) || !slices.Equal(s.left, []time.Duration{5 * time.Second, 5 * time.Second}) {
			t.Errorf("asked for %+v within %v", s.asked, s.left)
		}
	})
}
