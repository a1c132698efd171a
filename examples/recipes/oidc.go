package recipes

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/samekey/samekey/idem"
)

// OIDC identifies users whom a load balancer has logged in, by the signed token in x-amzn-oidc-data.
// Lambda doesn't verify the token.
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/listener-authenticate-users.html
type OIDC struct {
	// Signer is the ARN of the load balancer. Other load balancers sign with the same keys.
	Signer string
	// Keys is the URL of the Region's keys.
	Keys string
	// HTTP downloads the keys, during a request: set a short timeout.
	HTTP *http.Client
	// Now is the clock.
	Now func() time.Time

	mu    sync.Mutex
	known map[string]*ecdsa.PublicKey // by id; a key never changes
}

// NewOIDC returns an OIDC for a load balancer.
func NewOIDC(loadBalancer string) *OIDC {
	region := strings.Split(loadBalancer+":::", ":")[3]
	return &OIDC{
		Signer: loadBalancer, Keys: "https://public-keys.auth.elb." + region + ".amazonaws.com/",
		HTTP: &http.Client{Timeout: 2 * time.Second}, Now: time.Now,
	}
}

// Scope is an idem.Options.Scope. It returns the issuer and the subject of a token that the
// load balancer has signed and that hasn't expired. It refuses all other requests.
func (o *OIDC) Scope(ctx context.Context, r *idem.Request) (string, error) {
	sent := r.Header["X-Amzn-Oidc-Data"]
	if len(sent) != 1 {
		return "", fmt.Errorf("x-amzn-oidc-data came %d times", len(sent))
	}
	parts := strings.Split(sent[0], ".")
	if len(parts) != 3 {
		return "", errors.New("x-amzn-oidc-data is no token")
	}
	var head struct {
		Alg, Kid, Signer, Iss string
		Exp                   int64
	}
	if err := decode(parts[0], &head); err != nil {
		return "", err
	}
	switch {
	case head.Alg != "ES256":
		return "", errors.New("the token isn't signed by ES256")
	case head.Signer != o.Signer:
		return "", errors.New("the token is of another load balancer")
	case head.Exp <= o.Now().Unix():
		return "", errors.New("the token has expired")
	}
	key, err := o.key(ctx, head.Kid)
	if err != nil {
		return "", err
	}
	signature, err := raw(parts[2])
	if err != nil || len(signature) != 64 {
		return "", errors.New("the signature can't be read")
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return "", errors.New("the signature is wrong")
	}
	var claims struct{ Sub string }
	if err := decode(parts[1], &claims); err != nil {
		return "", err
	}
	if claims.Sub == "" || head.Iss == "" {
		return "", errors.New("the token names nobody")
	}
	return url.QueryEscape(head.Iss) + " " + claims.Sub, nil // a subject is unique only within its issuer
}

// A key's id becomes part of a URL, and a forger of tokens chooses the id.
var keyID = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`)

func (o *OIDC) key(ctx context.Context, id string) (*ecdsa.PublicKey, error) {
	if !keyID.MatchString(id) {
		return nil, errors.New("the key's id is no id")
	}
	o.mu.Lock()
	key := o.known[id]
	o.mu.Unlock()
	if key != nil {
		return key, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.Keys+id, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := o.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 10<<10))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the key can't be had: status %d, %v", resp.StatusCode, err) //nolint:errorlint // nil when only the status is wrong
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := public.(*ecdsa.PublicKey)
	if !ok {
		return nil, errors.New("the key is of another kind")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = make(map[string]*ecdsa.PublicKey)
	}
	o.known[id] = key
	return key, nil
}

// raw reads base64 with or without padding: load balancers pad.
func raw(part string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
}

func decode(part string, into any) error {
	text, err := raw(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
