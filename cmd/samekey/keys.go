package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/seal"
	"github.com/samekey/samekey/seal/program"
)

// registerKeys registers --keys-from, for commands that read contents of records.
func (op *operator) registerKeys(fs *pflag.FlagSet) {
	fs.StringVar(&op.keysFrom, "keys-from", op.env.getenv("SAMEKEY_KEYS_FROM"),
		"`PROGRAM` that has the keys of sealed records, such as samekey-keys; arguments may follow (default: SAMEKEY_KEYS_FROM)")
}

// openKeys makes the sealer for the program of --keys-from, but doesn't run the program yet.
func (op *operator) openKeys() error {
	argv := strings.Fields(op.keysFrom)
	if len(argv) == 0 {
		return nil
	}
	env := []string{"IDEM_TABLE=" + op.table}
	if op.region != "" {
		env = append(env, "AWS_REGION="+op.region)
	}
	if op.profile != "" {
		env = append(env, "AWS_PROFILE="+op.profile)
	}
	provider, err := program.New(argv, env...)
	if err != nil {
		return fmt.Errorf("--keys-from %s: %w", plain.Line(op.keysFrom), err)
	}
	op.sealer = seal.New(provider)
	return nil
}

// operator.readable takes the results of loading a record, and returns them unchanged. But
// if the record's contents can't be decrypted, readable returns the record (which then
// lacks its contents) and no error, and sets op.sealed to the reason.
func (op *operator) readable(rec *store.Record, err error) (*store.Record, error) {
	op.sealed = ""
	if rec == nil || !errors.Is(err, store.ErrSealed) {
		return rec, err
	}
	op.sealed = sealedText(op.sealer, err)
	return rec, nil
}

func sealedText(sealer *seal.Sealer, err error) string {
	if sealer == nil {
		return "no data key: set --keys-from to a program that has the keys"
	}
	return "no data key: the program of --keys-from failed: " + err.Error()
}

// sealedWrite explains why a decision about a sealed record was refused.
func (op *operator) sealedWrite(err error) error {
	return fmt.Errorf("the record is sealed: %s; nothing was changed, because the command needs the data key to store an answer or a result",
		sealedText(op.sealer, err))
}
