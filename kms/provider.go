package kms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/samekey/samekey/seal"
)

// API is the part of *kms.Client that a Provider uses.
type API interface {
	GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

var (
	_ API           = (*kms.Client)(nil)
	_ seal.Provider = (*Provider)(nil)
)

// Provider is a [seal.Provider] with data keys of AWS KMS. It is safe for concurrent
// use. A call of KMS, with the retries of KMS's client, takes at most 5 seconds, or
// less if the context ends earlier.
type Provider struct {
	api  API
	key  string
	keys []string
	opt  Options
}

// Options are a provider's settings; the zero value is the default.
type Options struct {
	// Former are the ARNs of earlier keys that the current key has replaced. The
	// provider opens data keys that were wrapped with the current key or a key in
	// Former. It refuses data keys of any other key, so that a forged record can't
	// bring in a foreign key. KMS's yearly rotation keeps the ARN, so it needs no entry
	// in Former. Default: none.
	Former []string
	// Context is the encryption context of all data keys, for instance the table and the
	// application. The context is not secret: policies and CloudTrail show it. After a change of
	// the context, earlier records can't be opened. Default: none.
	Context map[string]string
}

// timeout limits a call together with the call's retries, so that these end before the
// request's time is over.
const timeout = 5 * time.Second

var keyARN = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]+$`)

// New returns a provider that wraps data keys with a symmetric key of KMS. The
// parameter key is the ARN of the symmetric key. New refuses an alias, because records
// name the key by its ARN. New makes no calls.
func New(api API, key string, optFns ...func(*Options)) (*Provider, error) {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	if api == nil {
		return nil, errors.New("kms: New: api is nil; pass a client of KMS")
	}
	keys := append([]string{key}, opt.Former...)
	for _, k := range keys {
		if !keyARN.MatchString(k) {
			return nil, fmt.Errorf("kms: New: %q is not the ARN of a key, as arn:aws:kms:REGION:ACCOUNT:key/ID", k)
		}
	}
	opt.Context = maps.Clone(opt.Context)
	return &Provider{api: api, key: key, keys: keys, opt: opt}, nil
}

// Generate implements [seal.Provider] by one call of GenerateDataKey.
func (p *Provider) Generate(ctx context.Context) (seal.DataKey, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := p.api.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: &p.key, KeySpec: types.DataKeySpecAes256, EncryptionContext: p.opt.Context})
	if err != nil {
		return seal.DataKey{}, fmt.Errorf("kms: generate: %w", err)
	}
	return seal.DataKey{KeyID: p.key, Plain: out.Plaintext, Wrapped: out.CiphertextBlob}, nil
}

// Open implements [seal.Provider] by one call of Decrypt. If keyID is neither the key
// of New nor in Options.Former, Open returns an error without a call.
func (p *Provider) Open(ctx context.Context, keyID string, wrapped []byte) ([]byte, error) {
	if !slices.Contains(p.keys, keyID) {
		return nil, fmt.Errorf("kms: the key %q is neither the current key nor in Options.Former", keyID)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := p.api.Decrypt(ctx, &kms.DecryptInput{KeyId: &keyID, CiphertextBlob: wrapped, EncryptionContext: p.opt.Context})
	if err != nil {
		return nil, openError(err)
	}
	if aws.ToString(out.KeyId) != keyID {
		return nil, fmt.Errorf("kms: %w: KMS opened the data key with another key, %q", seal.ErrInvalid, aws.ToString(out.KeyId))
	}
	return out.Plaintext, nil
}

// openError returns an error that matches seal.ErrInvalid if the wrapped key was altered or
// belongs to another key.
func openError(err error) error {
	_, altered := errors.AsType[*types.InvalidCiphertextException](err)
	_, swapped := errors.AsType[*types.IncorrectKeyException](err)
	if altered || swapped {
		return fmt.Errorf("kms: %w: %w", seal.ErrInvalid, err)
	}
	return fmt.Errorf("kms: open: %w", err)
}
