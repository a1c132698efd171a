package stack

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
)

// kmsAPI stands in for the two calls of AWS KMS that a seal.Sealer makes. It derives a
// key from the ARN alone, so that it can still decrypt after the stack is started
// again. The keys are therefore no secret.
type kmsAPI struct{ next http.Handler }

type kmsCall struct {
	KeyID             string `json:"KeyId"`
	EncryptionContext map[string]string
	CiphertextBlob    []byte `json:",omitempty"`
}

type kmsAnswer struct {
	KeyID          string `json:"KeyId"`
	Plaintext      []byte
	CiphertextBlob []byte `json:",omitempty"`
}

func (k kmsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "TrentService.")
	if !ok || operation != "GenerateDataKey" && operation != "Decrypt" {
		k.next.ServeHTTP(w, r)
		return
	}
	var in kmsCall
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&in); err != nil || in.KeyID == "" {
		writeError(w, http.StatusBadRequest, "ValidationException", map[string]string{"message": "samekey local: name the key by its ARN"})
		return
	}
	wrap, bound := in.wrap()
	out := kmsAnswer{KeyID: in.KeyID}
	if operation == "GenerateDataKey" {
		out.Plaintext = make([]byte, 32)
		_, _ = rand.Read(out.Plaintext)                                // never fails
		out.CiphertextBlob = wrap.Seal(nil, nil, out.Plaintext, bound) //nolint:gosec // the AEAD draws its own nonce
	} else {
		var err error
		if out.Plaintext, err = wrap.Open(nil, nil, in.CiphertextBlob, bound); err != nil {
			writeError(w, http.StatusBadRequest, "InvalidCiphertextException", map[string]string{
				"message": "samekey local: the data key belongs to another key or encryption context",
			})
			return
		}
	}
	writeJSON(w, http.StatusOK, out)
}

// kmsCall.wrap returns the key's cipher, and the encryption context as the cipher's
// additional data.
func (in kmsCall) wrap() (cipher.AEAD, []byte) {
	key := sha256.Sum256([]byte("samekey local: " + in.KeyID))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) //nolint:forbidigo // the key has 32 bytes
	}
	wrap, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) //nolint:forbidigo // the block has 16 bytes
	}
	bound, err := json.Marshal(in.EncryptionContext) // sorted by name
	if err != nil {
		panic(err) //nolint:forbidigo // texts
	}
	return wrap, bound
}
